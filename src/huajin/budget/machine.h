// What this machine can do, measured in a tenth of a second: never what the build machine could.
#pragma once

namespace huajin {

struct Machine {
  int threads = 1;
  double fp32_flops = 0, bf16_flops = 0;  // of a matrix product of 512 x 512, a second
  double memory_bytes = 0;                // that this process may use: of the machine or of its control group
};
Machine measure_machine();

}  // namespace huajin
