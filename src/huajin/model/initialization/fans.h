// How many inputs and outputs a weight connects: what initialisations and rates by width are made of.
#pragma once
#include <map>

#include "huajin/core/model.h"

namespace huajin {

// Matrices [in, out]: tables of embeddings, and those whose layer has a bias as long as their second dimension (Hugging Face's Conv1D). Others, and
// convolutions, are [out, in, ...].
std::map<const Weight*, bool> transposed_weights(const Model& model);

struct Fans {
  double in = 0, out = 0;
};
// Of a matrix, or of a convolution [out, in, ...]: both times the pixels of its window. Of `parts` fused along the outputs: of one of them.
Fans fans_of(const Weight& weight, bool transposed);

}  // namespace huajin
