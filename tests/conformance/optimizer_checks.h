// Laws of optimizers, tried on a bare session.
#pragma once
#include <functional>

#include "bare_session.h"

namespace huajin {

// Updates with the gradients as they are, the first one numbered `first` (from 0).
void take_steps(BareSession& session, int64_t steps, int64_t first = 0);
// Two sessions with optimizers and no parameters yet take the same eight steps on a matrix (weights times `scale`) that decays or doesn't.
void expect_same_steps(BareSession& one, BareSession& other, double tolerance, double scale = 1, bool decays = true);
// Two ranks that hold half of each tensor, in threads, take the steps that one with the whole tensors takes. `setup` sets the optimizer.
void expect_halves_as_whole(const std::function<void(Session&)>& setup);

}  // namespace huajin
