#include "huajin/core/names.h"

#include <algorithm>

namespace huajin {
namespace {

size_t edits(std::string_view a, std::string_view b) {  // optimal string alignment
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.size() > 100) return "";
  std::string best;
  size_t fewest = name.size() / 3 + 2;
  for (auto& candidate : candidates) {
    const size_t n = edits(name, candidate);
    if (n < fewest) fewest = n, best = candidate;
  }
  if (!best.empty() || name.size() < 3) return best;
  for (auto& candidate : candidates)  // "lr" is no edit of "learning_rate", but "rate" is in it
    if (candidate.find(name) != std::string::npos) return candidate;
  return "";
}

std::string suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string near = nearest_name(name, candidates);
  if (!near.empty()) return "; did you mean \"" + near + "\"?";
  std::string all;
  for (auto& candidate : candidates) all += (all.empty() ? "" : ", ") + candidate;
  return all.empty() ? "; it takes no keys" : "; there are " + all;
}

}  // namespace huajin
