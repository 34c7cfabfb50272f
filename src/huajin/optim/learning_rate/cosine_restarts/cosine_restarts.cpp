#include "huajin/optim/learning_rate/cosine_restarts/cosine_restarts.h"

#include "huajin/optim/learning_rate/cosine/cosine.h"

namespace huajin {

double cosine_restarts_shape(double u, int64_t cycles, double growth, double final) {
  double all = 0, length = 1;
  for (int64_t i = 0; i < cycles; ++i) all += length, length *= growth;
  double begun = 0;
  length = 1;
  // Quotients of sums, not sums of quotients: a restart falls on the very update where its step / steps is this fraction.
  for (int64_t i = 0; i + 1 < cycles && u >= (begun + length) / all; ++i) begun += length, length *= growth;
  return cosine_shape((u * all - begun) / length, final);
}

CosineRestartsSchedule::CosineRestartsSchedule(const CosineRestartsScheduleConfig& config)
    : ScheduleTechnique("cosine_restarts", config.warmup, [config](double fraction) {
        return cosine_restarts_shape(after_warmup(config.warmup, fraction), config.cycles, config.growth, config.final);
      }) {}

}  // namespace huajin
