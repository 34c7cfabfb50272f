// Unicode's letters, numbers and white space, as the patterns \p{L}, \p{N} and \s of Python's `regex` module take them (GPT-2's split is defined by it).
// The runs are made by tests/golden/unicode_classes.py.
#pragma once
#include <cstdint>
#include <iterator>
#include <vector>

namespace huajin {

enum class UnicodeClass : unsigned char { kOther, kLetter, kNumber, kSpace };

UnicodeClass unicode_class(uint32_t code_point);  // O(log runs)
constexpr uint32_t kLowUnicode = 0x10000;
const std::vector<UnicodeClass>& low_unicode_classes();  // of code points below kLowUnicode, by index

}  // namespace huajin
