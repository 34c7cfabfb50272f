// Text from a model, token by token, with the keys and values of earlier tokens kept.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "huajin/core/session.h"
#include "huajin/io/tokenizer.h"

namespace huajin {

struct GenerateOptions {
  int64_t tokens = 256;
  double temperature = 0.8;
  int64_t top_k = 0;  // 0: all
  double top_p = 1;
  uint64_t seed = 1;
  double seconds = 0;  // stop after so long; 0: no limit
};

// Which token comes next: of softmax(logits / temperature), cut to the top_k likeliest and then to the fewest that hold top_p of the probability, the
// one at `uniform` in [0, 1) of the cumulated probability, likeliest first (equal ones: smaller id first). Temperature 0: the likeliest. Pure.
int64_t choose_token(std::span<const float> logits, double temperature, int64_t top_k, double top_p, double uniform);

// Keys and values of a model's layers: one buffer a layer that grows by doubling.
class KeyValueCache : public Cache {
 public:
  std::pair<Tensor, Tensor> append(const Layer& where, const Tensor& k, const Tensor& v) override;
  void clear() { stored_.clear(); }

 private:
  struct Stored {
    Tensor k, v;  // [B, G, capacity, K]
    int64_t length = 0;
  };
  std::map<const Layer*, Stored> stored_;
};

// Calls `out` with each piece of text as soon as its bytes are whole UTF-8 characters. When the model's context is full, its later half is read again
// and the text goes on. Returns the tokens made.
int64_t generate(RunSession& session, const Tokenizer& tokenizer, std::string_view prompt, const GenerateOptions& options,
                 const std::function<void(std::string_view)>& out);

}  // namespace huajin
