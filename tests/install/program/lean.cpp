// The simplest program that trains: no torch/nn, no torch/torch.h. It must compile in less than half the time of one that includes them.
#include <huajin/core/model.h>
#include <huajin/core/process.h>
#include <huajin/core/trainer.h>

int main() {
  huajin::start_process();
  return huajin::parse_limits("10s", "lean").any() ? 0 : 1;
}
