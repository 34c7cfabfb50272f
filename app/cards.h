// The techniques' cards (the README.md in each folder), built in: an installed huajin has no source folder. cards.cpp is made by CMake.
#pragma once
#include <string>
#include <string_view>

namespace huajin {
std::string card_of(std::string_view name);  // "" where there is none
}
