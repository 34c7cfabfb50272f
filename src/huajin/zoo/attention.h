// Causal attention. B rows, T tokens, H query heads, G key/value heads, K head size.
#pragma once
#include "huajin/core/model.h"

namespace huajin {

// [B, T, heads K] -> [B, heads, T, K], a view; and back, [B, T, H K].
Tensor split_heads(const Tensor& x_BTD, int64_t head_size);
Tensor merge_heads(const Tensor& x_BHTK);

// Rotary position embedding of tokens at first_position, first_position + 1, ... in the half-rotation of Hugging Face's Llama (zoo/fused.h); angles
// in float32, or float64 for float64. With w [K], each head is RMS-normalised first (QK-norm). x [B, T, heads K] -> [B, heads, T, K] of x's type.
Tensor rotate_heads(const Tensor& x_BTD, int64_t head_size, const Tensor& w, double epsilon, int64_t first_position, double base);

// softmax(q k^T / sqrt(K)) v over earlier tokens and itself; G divides H. With a cache in `f`, over all tokens so far.
Tensor causal_attention(Forward& f, const Layer& where, const Tensor& q_BHTK, const Tensor& k_BGTK, const Tensor& v_BGTK);

// 2 x multiply-adds of scores and values of one row, as if nothing were masked.
double attention_flops(int64_t length, int64_t width);

}  // namespace huajin
