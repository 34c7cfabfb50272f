// Which tensors are not finite, and how: the line that a skipped step leaves.
#pragma once
#include <span>
#include <string>

#include "huajin/core/technique.h"

namespace huajin {

// "the gradient of h.0.attn.weight is not finite (3 NaN, 1 infinite of 768), and of 2 more". A weight that is not finite is named first: it is the cause,
// and no later step can mend it. Neither weights nor gradients: "the loss is not finite".
std::string finite_report(std::span<const Parameter> parameters);

}  // namespace huajin
