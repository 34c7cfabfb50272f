// Logits that exist whole on this rank.
#pragma once
#include <memory>

#include "huajin/core/technique.h"

namespace huajin {

// logits [b, T, V] or [b, V], with graph. float32 logits may be overwritten by cross_entropy's backward pass, which turns them into their gradient in place
// (one buffer of N x V instead of three); asking for any other quantity first switches that off.
std::shared_ptr<Logits> dense_logits(Tensor logits);

}  // namespace huajin
