// The part of a product that one thread makes (zoo/product.h), compiled for each instruction set and chosen at run time (Highway).
#pragma once
#include <cstdint>

#include "huajin/zoo/product.h"

namespace huajin {

struct Factors {  // C [m, n] = A [m, k] B [k, n] + bias [n]
  Strided a, b;
  const float* bias;
  float* c;
  int64_t stride;  // of C's rows
  int64_t m, n, k;
};

struct ProductKernel {
  int64_t rows, columns;  // of the tile that stays in registers
  int64_t depth;          // most of the inner dimension at a time; it is cut into equal pieces
  // Groups [first, last) of `rows` rows of A [m, k], in the layout of the inner loop: piece by piece, in each group after group. to: m * k numbers.
  void (*pack)(Strided a, int64_t m, int64_t k, int64_t first, int64_t last, float* to);
  // Rows [row, row + count) and columns [column, column + width) of C = A B + bias (null: none); row and column are multiples of the tile's. packed: of all of A, or null;
  // then a_room: depth * count numbers. b_room: depth * columns, aligned to 64 bytes.
  struct Part {
    int64_t row, count, column, width;
  };
  void (*part)(const Factors& f, const Part& part, const float* packed, float* a_room, float* b_room);
};

const ProductKernel& product_kernel();
bool product_kernel_is_measured();  // AVX2 without AVX-512

}  // namespace huajin
