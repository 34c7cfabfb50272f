// Checkpoints on disk. Each is a folder:
//
//   checkpoints/step-00001000/
//     model/model.safetensors, config.json, ...   a folder that Hugging Face opens
//     state.safetensors  state.json               the rest of what a run needs to go on bit for bit
//     manifest.json                               written last: size and XXH3-128 of every file and of every tensor, and of itself
//
// It is written under another name, every file synced, renamed, the parent synced: so a name step-N is a whole checkpoint or none. Nothing that
// is read here is believed before its hash was checked. One process at a time writes in a folder of checkpoints (RunFolder's lock sees to it).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "huajin/io/safetensors.h"

namespace huajin {

struct CheckpointContent {
  int64_t step = 0;
  std::optional<double> score;  // validation loss at this step, lower is better; absent: not evaluated
  std::vector<TensorToStore> model, state;
  std::map<std::string, std::string> model_files;                       // beside model.safetensors: config.json, tokenizer files; name -> content
  std::map<std::string, std::string> model_metadata{{"format", "pt"}};  // transformers refuses a file without it
  std::string state_json;
};
uint64_t checkpoint_bytes(const CheckpointContent& content);  // on disk, an upper estimate

// Writes it and returns its path. WriteError if the disk is too small (found before anything is written) or fails: then the folder is as before. A
// checkpoint of the same step is replaced. Leftovers of killed processes are removed.
std::string save_checkpoint(const std::string& checkpoints, const CheckpointContent& content);

struct CheckpointCheck {
  std::vector<std::string> wrong;      // one line each, naming file, tensor and offset; empty: every byte is as it was written
  std::vector<std::string> strangers;  // files that the manifest does not know: harmless, not proven
  uint64_t bytes = 0;                  // proven
  int64_t tensors = 0, files = 0;
  int64_t step = -1;
  std::optional<double> score;
  bool good() const { return wrong.empty(); }
};
// Reads and hashes everything. Does not throw for damage.
CheckpointCheck verify_checkpoint(const std::string& folder);

// Paths of all checkpoints of a run, newest first. Temporary folders don't count.
std::vector<std::string> list_checkpoints(const std::string& checkpoints);

struct FoundCheckpoint {
  std::string path;                  // "": none is good
  std::vector<std::string> skipped;  // damaged newer ones: "PATH: what is wrong"
};
FoundCheckpoint newest_good_checkpoint(const std::string& checkpoints);

// Removes what `keep` newest, the best score and the last don't need. Verifies the newest first and removes nothing if it is damaged. A checkpoint
// goes by one rename, so that it is never half there. Returns what was removed.
std::vector<std::string> retire_checkpoints(const std::string& checkpoints, int64_t keep);

// A verified checkpoint, open for reading. DamagedError with the first finding if anything is wrong.
class OpenCheckpoint {
 public:
  explicit OpenCheckpoint(const std::string& folder);
  const std::string& path() const { return path_; }
  int64_t step() const { return step_; }
  const Safetensors& model() const { return model_; }
  const Safetensors& state() const { return state_; }
  const std::string& state_json() const { return state_json_; }

 private:
  std::string path_;
  int64_t step_;
  Safetensors model_, state_;
  std::string state_json_;
};

// What manifest.json says, after its own hash was checked. For verify and the fuzz target. DamagedError.
struct Manifest {
  struct Part {
    std::string name;  // tensor
    uint64_t offset = 0, bytes = 0;
    std::string hash;
  };
  struct File {
    uint64_t bytes = 0;
    std::string hash;
    std::vector<Part> tensors;
  };
  int64_t step = 0;
  std::optional<double> score;
  std::map<std::string, File> files;  // path within the checkpoint
};
Manifest parse_manifest(std::string_view text, const std::string& where);
std::string manifest_text(const Manifest& manifest);

}  // namespace huajin
