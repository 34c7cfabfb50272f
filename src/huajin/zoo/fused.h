// Small operations that a transformer repeats, each with its own backward pass that saves only its inputs. On the CPU in float32 and float64 one
// kernel does each (fused_kernels.cpp); elsewhere the same formula in tensor operations. All differentiate once.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace huajin::fused {
using at::Tensor;

// x / sqrt(mean(x^2) + epsilon) * w over the last dimension; w [D] of x's type.
Tensor rms_norm(const Tensor& x, const Tensor& w, double epsilon);

// max(x, 0)^2 (So et al., 2021).
Tensor relu_squared(const Tensor& x);

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel, 2016): GPT-2's "gelu_new".
Tensor gelu_tanh(const Tensor& x);

// gate sigmoid(gate) up (Shazeer, 2020, SwiGLU).
Tensor gated_silu(const Tensor& gate, const Tensor& up);

// Rotary position embedding (Su et al., 2021) in the half-rotation of Hugging Face's Llama: of head h at position p, pairs (i, i + K/2) turn by the
// angle p base^(-2i/K). x [B, T, heads, K] contiguous, cos and sin [T, K/2] of the positions. With w [K]: rms_norm(x, w, epsilon) of each head first
// (QK-norm).
Tensor rotate(const Tensor& x_BTHK, const Tensor& w, double epsilon, const Tensor& cos_TC, const Tensor& sin_TC);

}  // namespace huajin::fused
