#include "app/generation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <vector>

#include "huajin/core/errors.h"
#include "huajin/core/execution.h"
#include "huajin/core/rng.h"

namespace huajin {

int64_t choose_token(std::span<const float> logits, double temperature, int64_t top_k, double top_p, double uniform) {
  const auto likeliest = std::max_element(logits.begin(), logits.end()) - logits.begin();
  if (temperature == 0) return likeliest;
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](int64_t a, int64_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const auto kept = top_k > 0 ? std::min(static_cast<size_t>(top_k), order.size()) : order.size();
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(kept), order.end(), likelier);
  order.resize(kept);
  std::vector<double> weight(kept);
  const double most = logits[static_cast<size_t>(order[0])];
  for (size_t i = 0; i < kept; ++i) weight[i] = std::exp((static_cast<double>(logits[static_cast<size_t>(order[i])]) - most) / temperature);
  double total = std::accumulate(weight.begin(), weight.end(), 0.0);
  size_t nucleus = 0;
  for (double held = 0; nucleus < kept && (nucleus == 0 || held < top_p * total); ++nucleus) held += weight[nucleus];
  if (top_p < 1)
    total = std::accumulate(weight.begin(), weight.begin() + static_cast<int64_t>(nucleus), 0.0);
  else
    nucleus = kept;
  double at = uniform * total;
  for (size_t i = 0; i < nucleus; ++i)
    if ((at -= weight[i]) < 0) return order[i];
  return order[nucleus - 1];
}

std::pair<Tensor, Tensor> KeyValueCache::append(const Layer& where, const Tensor& k, const Tensor& v) {
  Stored& stored = stored_[&where];
  const int64_t added = k.size(2), needed = stored.length + added;
  if (!stored.k.defined() || needed > stored.k.size(2)) {
    const int64_t capacity = std::max<int64_t>(2 * needed, 64);
    const auto grown = [&](const Tensor& old, const Tensor& like) {
      Tensor larger = at::empty({like.size(0), like.size(1), capacity, like.size(3)}, like.options());
      if (old.defined() && stored.length > 0) larger.narrow(2, 0, stored.length).copy_(old.narrow(2, 0, stored.length));
      return larger;
    };
    stored.k = grown(stored.k, k), stored.v = grown(stored.v, v);
  }
  stored.k.narrow(2, stored.length, added).copy_(k);
  stored.v.narrow(2, stored.length, added).copy_(v);
  stored.length = needed;
  return {stored.k.narrow(2, 0, needed), stored.v.narrow(2, 0, needed)};
}

namespace {

// Length of the longest prefix that does not end inside a UTF-8 character.
size_t whole_characters(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    const size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (byte >= 0xc0) return length > back ? text.size() - back : text.size();
    if (byte < 0x80) break;
  }
  return text.size();
}

std::vector<float> next_logits(RunSession& session, std::span<const uint32_t> ids, KeyValueCache& cache, int64_t position) {
  std::vector<int64_t> wide(ids.begin(), ids.end());
  const Tensor input = at::tensor(wide, at::kLong).unsqueeze(0).to(session.device());
  const Tensor logits = session.execution().logits(input, &cache, position);
  const Tensor last = logits.select(1, logits.size(1) - 1).select(0, 0).to(at::kFloat).cpu().contiguous();
  return {last.const_data_ptr<float>(), last.const_data_ptr<float>() + last.numel()};
}

}  // namespace

int64_t generate(RunSession& session, const Tokenizer& tokenizer, std::string_view prompt, const GenerateOptions& options,
                 const std::function<void(std::string_view)>& out) {
  at::NoGradGuard off;
  const auto began = std::chrono::steady_clock::now();
  const int64_t context = std::max<int64_t>(session.model().context, 2);
  std::vector<uint32_t> ids;
  tokenizer.encode(prompt.empty() ? "\n" : prompt, ids);
  if (ids.empty()) throw UserError("--prompt: becomes no token; give some text");
  if (static_cast<int64_t>(ids.size()) > context - 1) ids.erase(ids.begin(), ids.end() - (context - 1));
  KeyValueCache cache;
  std::vector<float> logits = next_logits(session, ids, cache, 0);
  std::vector<uint32_t> seen = ids;  // what the cache holds
  std::string waiting;
  int64_t made = 0;
  while (made < options.tokens) {
    const double u = uniform(mix(options.seed, static_cast<uint64_t>(Purpose::kGenerate)), static_cast<uint64_t>(made));
    const auto token = static_cast<uint32_t>(choose_token(logits, options.temperature, options.top_k, options.top_p, u));
    waiting += tokenizer.bytes_of(token);
    if (const size_t whole = whole_characters(waiting); whole > 0) out(std::string_view(waiting).substr(0, whole)), waiting.erase(0, whole);
    if (++made == options.tokens) break;
    if (options.seconds > 0 && std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() > options.seconds) break;
    if (static_cast<int64_t>(seen.size()) + 1 > context) {  // full: the later half is read again
      seen.erase(seen.begin(), seen.begin() + static_cast<int64_t>(seen.size() - static_cast<size_t>(context / 2)));
      seen.push_back(token);
      cache.clear();
      logits = next_logits(session, seen, cache, 0);
    } else {
      const auto position = static_cast<int64_t>(seen.size());
      seen.push_back(token);
      logits = next_logits(session, std::span(&token, 1), cache, position);
    }
  }
  if (!waiting.empty()) out(waiting);
  return made;
}

}  // namespace huajin
