// Coordinate check: the sizes of activations after a few updates, by width. Flat in width if rates and initial weights fit it (Yang et al., arXiv
// 2203.03466, appendix D.1; microsoft/mup, "coord check"); growing or vanishing if not.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "huajin/core/trainer.h"

namespace huajin {

// Makes `steps` updates and one more pass; mean |element| of what each block puts out in that pass, by block's name. The session is not fit to train
// afterwards: its model is instrumented.
std::vector<std::pair<std::string, double>> activation_sizes(RunSession& session, Trainer& trainer, int64_t steps);

}  // namespace huajin
