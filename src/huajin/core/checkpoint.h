// Between a session and a checkpoint folder (io/checkpoint_folder.h). Everything that a run needs to go on bit for bit: weights by logical name in
// master precision, slots, techniques, loss scaler, progress, clocks. Random numbers need nothing: they follow from seed and position.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "huajin/core/session.h"
#include "huajin/core/trainer.h"
#include "huajin/io/checkpoint_folder.h"

namespace huajin {

// XXH3-128 over name, type, shape and bytes of every weight and statistic in logical order: equal hashes, equal models.
std::string weights_hash(const WeightTable& table);

// The safetensors type of a tensor, and back. Error for types that the format has not.
std::string stored_dtype(at::ScalarType type);
at::ScalarType tensor_dtype(std::string_view stored, const std::string& where);
// A copy in memory of its own, on the CPU.
Tensor to_tensor(const StoredTensor& stored, const std::string& where);

// What a checkpoint says about the run that wrote it, read without a session (resume builds the session from it).
struct CheckpointFacts {
  TrainerState state;
  std::string recipe, recipe_hash, weights_hash;
  uint64_t seed = 0;
  int64_t ranks = 1, threads = 1;
};
CheckpointFacts checkpoint_facts(const OpenCheckpoint& checkpoint);

// Restores a built session. Strict and all or nothing: UserError lists missing, unexpected and mismatched names in one line, and then the session is
// as it was. Loading twice equals loading once. Techniques come first, so that one that grew the model can do so again in serialize(). Collective.
void restore_session(RunSession& session, TrainerState& state, const OpenCheckpoint& checkpoint);

// Only the weights, from a folder or file of safetensors that somebody else may have written: names as strict as above, types are converted. Accepted
// besides: the model's own prefix absent ("h.0..." for "transformer.h.0..."), a tied weight stored again with equal bytes, and the constant masks
// and frequencies that old versions of transformers stored. Slots that start as copies start again. Returns how many tensors were taken.
int64_t load_weights(RunSession& session, const Safetensors& weights);

struct KeeperOptions {
  std::string checkpoints;                         // folder
  int64_t keep = 2;                                // newest so many; best and last stay anyway
  std::string recipe;                              // resolved text
  std::map<std::string, std::string> model_files;  // beside config.json: tokenizer files; name -> content
  std::function<void(const std::string&)> note;    // warnings (damaged newer checkpoint, full disk); empty: one line on stderr
};

class CheckpointKeeper : public Keeper {
 public:
  explicit CheckpointKeeper(KeeperOptions options) : options_(std::move(options)) {}
  // Rank 0 writes; the path or "" on every rank. Collective.
  std::string save(RunSession& session, const TrainerState& state, bool last) override;
  // The newest that is good; says which it skipped. DamagedError if there are some and all are damaged.
  bool load_newest(RunSession& session, TrainerState& state) override;
  // WriteError unless keep + 2 checkpoints fit on the disk: before step 1.
  void require_room(RunSession& session) const;

 private:
  std::string save_here(const CheckpointContent& content);
  void note(const std::string& warning) const;
  KeeperOptions options_;
};

}  // namespace huajin
