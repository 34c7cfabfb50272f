// The name that somebody meant.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace huajin {

// The candidate with the fewest edits (insert, delete, replace, swap neighbours) from `name`, if they are no more than a third of its length
// plus one; "" if none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean \"rho\"?" or "; there are a, b, c".
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace huajin
