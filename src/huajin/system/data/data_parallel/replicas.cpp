#include "huajin/system/data/data_parallel/replicas.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <vector>

#include "huajin/core/errors.h"
#include "huajin/io/hash.h"

namespace huajin {
namespace {

constexpr int64_t kProbeElements = 1 << 20;  // 4 MB of float32
constexpr int kProbeRounds = 8;

uint64_t hash_of(const at::Tensor& tensor) {
  const std::string hex = xxh3_hex(std::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()));
  return std::stoull(hex.substr(0, 16), nullptr, 16);
}

// [n] of this rank -> [ranks][n].
std::vector<std::vector<int64_t>> gather_words(Communicator& communicator, const std::vector<uint64_t>& own) {
  at::Tensor part = at::empty({static_cast<int64_t>(own.size())}, at::kLong);
  std::transform(own.begin(), own.end(), part.mutable_data_ptr<int64_t>(), [](uint64_t word) { return std::bit_cast<int64_t>(word); });
  const at::Tensor all = communicator.gather(part);
  std::vector<std::vector<int64_t>> words(communicator.ranks());
  for (size_t r = 0; r < words.size(); ++r) {
    const int64_t* from = all.const_data_ptr<int64_t>() + r * own.size();
    words[r].assign(from, from + own.size());
  }
  return words;
}

}  // namespace

std::string self_test(Communicator& communicator, uint64_t recipe_hash) {
  const int rank = communicator.rank(), ranks = communicator.ranks();
  if (ranks == 1) return "1 process";
  const auto words = gather_words(communicator, {recipe_hash, static_cast<uint64_t>(rank), static_cast<uint64_t>(ranks)});
  for (int r = 0; r < ranks; ++r) {
    if (words[r][1] != r || words[r][2] != ranks) throw Error(kExitInternal, "self-test: rank " + std::to_string(r) + " takes itself for another");
    if (words[r][0] != words[0][0]) throw UserError("rank " + std::to_string(r) + " has another recipe than rank 0; start all ranks with the same options and files");
  }
  at::Tensor probe = at::empty({kProbeElements}, at::kFloat);
  double best = 1e30;
  for (int round = 0; round < kProbeRounds; ++round) {
    probe.fill_(rank + 1);
    communicator.barrier("self-test");
    const auto began = std::chrono::steady_clock::now();
    communicator.sum(probe);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    const float expected = static_cast<float>(ranks) * static_cast<float>(ranks + 1) / 2;
    const float* values = probe.const_data_ptr<float>();
    for (int64_t i = 0; i < kProbeElements; ++i)
      if (values[i] != expected) throw Error(kExitInternal, "self-test: rank " + std::to_string(rank) + " got " + std::to_string(values[i]) + " instead of " + std::to_string(expected) + " as element " + std::to_string(i) + " of a sum");
  }
  char line[96];
  std::snprintf(line, sizeof line, "%d ranks agree; sums of 4 MB move %.1f GB/s", ranks, static_cast<double>(kProbeElements) * 4e-9 / best);
  return line;
}

void check_replicas(Communicator& communicator, std::span<Parameter* const> parameters, int64_t step) {
  if (communicator.ranks() == 1) return;
  std::vector<uint64_t> hashes;
  for (const Parameter* p : parameters) {
    const at::Tensor value = p->value.cpu().contiguous();
    hashes.push_back(hash_of(value));
  }
  const auto words = gather_words(communicator, hashes);
  for (size_t i = 0; i < hashes.size(); ++i)
    for (int r = 1; r < communicator.ranks(); ++r)
      if (words[r][i] != words[0][i])
        throw Error(kExitInternal, "step " + std::to_string(step) + ": the weights of rank " + std::to_string(r) + " and rank 0 differ, first in " + parameters[i]->name +
                                       "; gradients were not summed over ranks. Continue from the newest checkpoint");
}

void ReplicaWatch::on_step(const Progress& progress, double) {
  if (progress.step > 0 && progress.step % every_ == 0) check_replicas(session_.communicator(), session_.parameters(), progress.step);
}

}  // namespace huajin
