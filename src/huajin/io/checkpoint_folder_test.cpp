#include "huajin/io/checkpoint_folder.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

namespace huajin {
namespace {
namespace fs = std::filesystem;

// A checkpoint whose every byte follows from its step.
struct MadeCheckpoint {
  std::vector<float> weight, moment;
  std::vector<int64_t> counter;
  CheckpointContent content;
  explicit MadeCheckpoint(int64_t step, std::optional<double> score = {}, size_t size = 300) : weight(size), moment(size), counter{step} {
    for (size_t i = 0; i < size; ++i) {
      weight[i] = static_cast<float>(step) + static_cast<float>(i) * 0.25f;
      moment[i] = static_cast<float>(step) * 1e-3f - static_cast<float>(i);
    }
    const auto rows = static_cast<int64_t>(size / 3);
    content.step = step;
    content.score = score;
    content.model = {{"model.embed_tokens.weight", "F32", {rows, 3}, weight.data(), size * 4},
                     {"model.norm.weight", "F32", {}, weight.data() + 7, 4}};
    content.state = {{"adamw.first/model.embed_tokens.weight", "F32", {rows, 3}, moment.data(), size * 4},
                     {"counter", "I64", {1}, counter.data(), 8}};
    content.model_files = {{"config.json", "{\"model_type\": \"llama\"}"}, {"tokenizer.json", "{}"}};
    content.state_json = "{\"step\": " + std::to_string(step) + "}";
  }
};

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "huajin-ckpt-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string save(int64_t step, std::optional<double> score = {}) const { return save_checkpoint(folder_, MadeCheckpoint(step, score).content); }
  std::string newest() const { return fs::path(newest_good_checkpoint(folder_).path).filename().string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_)) all.push_back(entry.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  }
  std::string folder_;
};

// All of it, byte by byte, not only by its own hashes.
void expect_is(const std::string& path, int64_t step) {
  const OpenCheckpoint open(path);
  const MadeCheckpoint want(step);
  EXPECT_EQ(open.step(), step);
  EXPECT_EQ(open.state_json(), want.content.state_json);
  for (const auto& [file, tensors] : {std::pair(&open.model(), &want.content.model), std::pair(&open.state(), &want.content.state)}) {
    ASSERT_EQ(file->tensors().size(), tensors->size());
    for (const TensorToStore& tensor : *tensors) {
      const StoredTensor* got = file->find(tensor.name);
      ASSERT_TRUE(got) << tensor.name;
      EXPECT_EQ(got->shape, tensor.shape);
      EXPECT_EQ(as_text(got->data), std::string_view(static_cast<const char*>(tensor.data), tensor.bytes));
    }
  }
  EXPECT_EQ(read_file(path + "/model/config.json"), want.content.model_files.at("config.json"));
}

void flip_bit(const std::string& path, uint64_t bit) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(bit / 8));
  char byte = static_cast<char>(file.get());
  byte = static_cast<char>(byte ^ (1 << (bit % 8)));
  file.seekp(static_cast<std::streamoff>(bit / 8));
  file.put(byte);
}

TEST_F(CheckpointTest, SavesAndOpens) {
  const std::string path = save(1000, 2.5);
  EXPECT_EQ(fs::path(path).filename(), "step-00001000");
  expect_is(path, 1000);
  const CheckpointCheck check = verify_checkpoint(path);
  EXPECT_TRUE(check.good());
  EXPECT_EQ(check.tensors, 4);
  EXPECT_EQ(check.files, 6);
  EXPECT_EQ(check.step, 1000);
  EXPECT_EQ(check.score, 2.5);
  uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) bytes += entry.file_size();
  EXPECT_EQ(check.bytes, bytes);  // every byte was proven
  EXPECT_LE(bytes, checkpoint_bytes(MadeCheckpoint(1000).content));
  EXPECT_EQ(names(), std::vector<std::string>{"step-00001000"});
}

TEST_F(CheckpointTest, SavingTwiceGivesIdenticalFiles) {
  const std::string path = save(3);
  std::map<std::string, std::string> before;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) before[entry.path().string()] = read_file(entry.path().string());
  EXPECT_EQ(save(3), path);
  EXPECT_EQ(before.size(), 6u);
  for (const auto& [file, content] : before) EXPECT_EQ(read_file(file), content) << file;
  EXPECT_EQ(names().size(), 1u);
}

// ---- B9: after a stop at any call the old or the new state loads -----------------------------------------------------------
// A machine that dies before its n-th call: from then on nothing reaches the disk, and with `power` what was not synced is lost.
class DyingDisk {
 public:
  DyingDisk(int calls, bool power) : left_(calls), power_(power) {}
  int operator()(const DiskCall& call, size_t& allowed) {
    const std::string name = call.name;
    if (left_-- > 0) {
      if (name == "write") unsynced_.insert(call.path);
      if (name == "fsync") unsynced_.erase(call.path);
      if (name == "rename" || name == "exchange") {
        EXPECT_TRUE(unsynced_.empty()) << *unsynced_.begin() << " renamed before it was synced";
      }
      return 0;
    }
    if (!died_ && name == "write" && allowed > 1) {  // the last write is torn
      died_ = true;
      unsynced_.insert(call.path);
      allowed /= 2;
      return 0;
    }
    died_ = true;
    return EIO;
  }
  void lose_what_was_not_synced() const {
    if (power_)
      for (const std::string& path : unsynced_)
        if (exists(path)) fs::resize_file(path, file_size(path) / 3);
  }
  bool died() const { return died_; }

 private:
  int left_;
  bool power_, died_ = false;
  std::set<std::string> unsynced_;
};

// Saves `step` on a disk that dies before its n-th call, for every n. Checks what is left each time.
void die_at_every_call(const std::string& folder, int64_t old_step, int64_t step, bool power) {
  int n = 0;
  for (bool died = true; died; ++n) {
    fs::remove_all(folder);
    save_checkpoint(folder, MadeCheckpoint(old_step).content);
    auto disk = std::make_shared<DyingDisk>(n, power);
    {
      ScopedDiskHook hook([disk](const DiskCall& call, size_t& allowed) { return (*disk)(call, allowed); });
      try {
        save_checkpoint(folder, MadeCheckpoint(step).content);
        retire_checkpoints(folder, 1);
      } catch (const WriteError&) {
      }
    }
    disk->lose_what_was_not_synced();
    died = disk->died();
    const FoundCheckpoint found = newest_good_checkpoint(folder);
    EXPECT_TRUE(found.skipped.empty()) << n << ": " << found.skipped.front();  // no damaged checkpoint under a real name
    ASSERT_FALSE(found.path.empty()) << "nothing left after call " << n;
    const int64_t got = verify_checkpoint(found.path).step;
    EXPECT_TRUE(got == old_step || got == step);
    if (!died) {
      EXPECT_EQ(got, step);
    }
    expect_is(found.path, got);
    save_checkpoint(folder, MadeCheckpoint(step + 1).content);  // the next start goes on and cleans up
    retire_checkpoints(folder, 1);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1) << n;
  }
  EXPECT_GT(n, 25);  // the hook did see the calls
}

TEST_F(CheckpointTest, DiesAtEveryCall) { die_at_every_call(folder_ + "/c", 1, 2, false); }
TEST_F(CheckpointTest, LosesPowerAtEveryCall) { die_at_every_call(folder_ + "/c", 1, 2, true); }
TEST_F(CheckpointTest, DiesAtEveryCallWhileItReplacesTheSameStep) { die_at_every_call(folder_ + "/c", 2, 2, true); }

TEST_F(CheckpointTest, DiesWhereTheFileSystemCannotExchange) {
  int n = 0;
  for (bool died = true; died; ++n) {
    const std::string folder = folder_ + "/c";
    fs::remove_all(folder);
    save_checkpoint(folder, MadeCheckpoint(2).content);
    DyingDisk disk(n, false);
    {
      ScopedDiskHook hook(
          [&](const DiskCall& call, size_t& allowed) { return std::strcmp(call.name, "exchange") == 0 ? EINVAL : disk(call, allowed); });
      try {
        save_checkpoint(folder, MadeCheckpoint(2).content);
      } catch (const WriteError&) {
      }
    }
    died = disk.died();
    const FoundCheckpoint found = newest_good_checkpoint(folder);
    ASSERT_FALSE(found.path.empty()) << n;
    expect_is(found.path, 2);
  }
  EXPECT_GT(n, 25);
}

// ---- B10: the disk is full ----------------------------------------------------------------------------------------------------
TEST_F(CheckpointTest, FullDiskAtEveryCallKeepsTheOldAndLeavesNoTrace) {
  save(1);
  for (int n = 0;; ++n) {
    int calls = 0;
    bool failed = false;
    {
      ScopedDiskHook hook([&](const DiskCall& call, size_t&) {
        const std::string name = call.name;
        if (name == "remove" || name == "rename" || calls++ < n) return 0;
        return ENOSPC;
      });
      try {
        save(2);
      } catch (const WriteError& e) {
        failed = true;
        EXPECT_EQ(e.error_number(), ENOSPC);
        EXPECT_NE(std::string(e.what()).find(folder_), std::string::npos) << e.what();
      }
    }
    if (!failed) break;
    EXPECT_EQ(newest_good_checkpoint(folder_).skipped.size(), 0u);
    if (exists(folder_ + "/step-00000002")) {  // it failed only after the rename
      expect_is(folder_ + "/step-00000002", 2);
      fs::remove_all(folder_ + "/step-00000002");
    }
    EXPECT_EQ(names(), std::vector<std::string>{"step-00000001"}) << n;
  }
  EXPECT_EQ(newest(), "step-00000002");
}

TEST_F(CheckpointTest, RealLimitOnFileSize) {
  save(1);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{20000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(save_checkpoint(folder_, MadeCheckpoint(2, {}, 30000).content), WriteError);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(names(), std::vector<std::string>{"step-00000001"});
  expect_is(folder_ + "/step-00000001", 1);
}

TEST_F(CheckpointTest, RealDiskOfOneMegabyte) {
  const std::string disk = folder_ + "/disk";
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "tmpfs can't be mounted here";
  save_checkpoint(disk + "/c", MadeCheckpoint(1).content);
  std::string message;
  try {
    save_checkpoint(disk + "/c", MadeCheckpoint(2, {}, 300000).content);
  } catch (const WriteError& e) {
    message = e.what();
  }
  EXPECT_NE(message.find("the checkpoint of step 2 needs 2."), std::string::npos) << message;
  { std::ofstream(disk + "/filler") << std::string(700 << 10, 'x'); }
  // The estimate fits, then somebody else fills the disk while it is written.
  {
    int writes = 0;
    ScopedDiskHook hook([&](const DiskCall& call, size_t&) {
      if (std::strcmp(call.name, "write") == 0 && ++writes == 3) std::ofstream(disk + "/filler", std::ios::app) << std::string(1 << 20, 'x');
      return 0;
    });
    EXPECT_THROW(save_checkpoint(disk + "/c", MadeCheckpoint(2, {}, 30000).content), WriteError);
  }
  expect_is(newest_good_checkpoint(disk + "/c").path, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(disk + "/c"), {}), 1);
  fs::remove(disk + "/filler");
  save_checkpoint(disk + "/c", MadeCheckpoint(3).content);
  expect_is(newest_good_checkpoint(disk + "/c").path, 3);
  ::umount(disk.c_str());
}

// ---- B11, B12, G-3: damage ---------------------------------------------------------------------------------------------------
TEST_F(CheckpointTest, EachOf200BitFlipsIsFoundAndTheOlderOneIsUsed) {
  save(1);
  const std::string newer = save(2);
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(newer))
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  ASSERT_EQ(files.size(), 6u);
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    const std::string& file = files[static_cast<size_t>(i) % files.size()];
    const uint64_t bit = random() % (file_size(file) * 8);
    flip_bit(file, bit);
    const CheckpointCheck check = verify_checkpoint(newer);
    ASSERT_FALSE(check.good()) << file << " bit " << bit;
    EXPECT_EQ(check.wrong.front().rfind(newer, 0), 0u) << check.wrong.front();
    EXPECT_THROW(OpenCheckpoint{newer}, DamagedError);
    const FoundCheckpoint found = newest_good_checkpoint(folder_);
    EXPECT_EQ(fs::path(found.path).filename(), "step-00000001");
    ASSERT_EQ(found.skipped.size(), 1u);
    EXPECT_NE(found.skipped.front().find("step-00000002"), std::string::npos);
    flip_bit(file, bit);
  }
  EXPECT_TRUE(verify_checkpoint(newer).good());
}

TEST_F(CheckpointTest, FindingsNameTensorAndBytes) {
  const std::string path = save(5);
  const uint64_t offset = OpenCheckpoint(path).model().find("model.norm.weight")->offset;
  flip_bit(path + "/model/model.safetensors", offset * 8 + 3);
  const CheckpointCheck check = verify_checkpoint(path);
  ASSERT_EQ(check.wrong.size(), 1u);
  EXPECT_NE(check.wrong[0].find("model/model.safetensors: tensor 'model.norm.weight' (bytes " + std::to_string(offset) + " to " +
                                std::to_string(offset + 4)),
            std::string::npos)
      << check.wrong[0];
}

TEST_F(CheckpointTest, EveryTruncationAndEveryMissingFileIsFound) {
  save(1);
  for (const std::string file :
       {"model/model.safetensors", "model/config.json", "model/tokenizer.json", "state.safetensors", "state.json", "manifest.json"}) {
    const std::string newer = save(2), path = newer + "/" + file;
    const uint64_t size = file_size(path);
    for (const uint64_t cut : {uint64_t{0}, size / 2, size - 1}) {
      fs::resize_file(path, cut);
      EXPECT_EQ(newest(), "step-00000001") << file << " cut to " << cut;
    }
    fs::remove(path);
    EXPECT_EQ(newest(), "step-00000001") << file;
    std::ofstream(save(2) + "/" + file, std::ios::app) << 'x';
    EXPECT_EQ(newest(), "step-00000001") << file << " longer";
  }
  save(2);
  EXPECT_EQ(newest(), "step-00000002");
  std::ofstream(folder_ + "/step-00000002/model/notes.txt") << "mine";
  const CheckpointCheck check = verify_checkpoint(folder_ + "/step-00000002");
  EXPECT_TRUE(check.good());
  EXPECT_EQ(check.strangers.size(), 1u);
}

// Whoever writes a manifest with right hashes must still not lead us out of the folder or lie about tensors.
TEST_F(CheckpointTest, HostileManifest) {
  const std::string path = save(1), manifest_path = path + "/manifest.json";
  const Manifest good = parse_manifest(read_file(manifest_path), manifest_path);
  const auto with = [&](auto&& change) {
    Manifest manifest = good;
    change(manifest);
    std::ofstream(manifest_path) << manifest_text(manifest);
    return verify_checkpoint(path).good();
  };
  EXPECT_TRUE(with([](Manifest&) {}));
  EXPECT_FALSE(with([](Manifest& m) { m.files["../../../../etc/passwd"] = {}; }));
  EXPECT_FALSE(with([](Manifest& m) { m.files["/etc/passwd"] = {}; }));
  EXPECT_FALSE(with([](Manifest& m) { m.files.erase("state.json"); }));
  EXPECT_FALSE(with([](Manifest& m) { m.files["state.safetensors"].tensors.pop_back(); }));
  EXPECT_FALSE(with([](Manifest& m) { m.files["state.safetensors"].tensors[0].offset = UINT64_MAX / 4; }));
  EXPECT_FALSE(with([](Manifest& m) { m.files["state.safetensors"].tensors[0].name = "x"; }));
  EXPECT_FALSE(with([](Manifest& m) { m.files["model"] = {}; }));
  EXPECT_TRUE(with([](Manifest&) {}));
}

TEST_F(CheckpointTest, NothingGoodIsSaidPlainly) {
  EXPECT_EQ(newest_good_checkpoint(folder_ + "/absent").path, "");
  const std::string path = save(1);
  flip_bit(path + "/state.json", 5);
  const FoundCheckpoint found = newest_good_checkpoint(folder_);
  EXPECT_EQ(found.path, "");
  EXPECT_EQ(found.skipped.size(), 1u);
  EXPECT_THROW(OpenCheckpoint{folder_}, DamagedError);
}

// ---- B13: retention -------------------------------------------------------------------------------------------------------------
TEST_F(CheckpointTest, KeepOneAndSaveEveryStep) {
  for (int64_t step = 1; step <= 9; ++step) {
    save(step);
    retire_checkpoints(folder_, 1);
    ASSERT_EQ(names().size(), 1u);
    expect_is(newest_good_checkpoint(folder_).path, step);
  }
}

TEST_F(CheckpointTest, KeepsTheBestToo) {
  const double scores[] = {5, 4, 1.5, 3, 2, 7};
  for (int64_t step = 1; step <= 12; ++step) {
    save(step, step % 2 ? std::optional<double>() : scores[step / 2 - 1]);
    retire_checkpoints(folder_, 2);
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000006", "step-00000011", "step-00000012"}));
}

TEST_F(CheckpointTest, NeverRemovesWhileTheNewestIsDamaged) {
  save(1);
  save(2);
  const std::string newest_path = save(3);
  flip_bit(newest_path + "/state.safetensors", 999);
  EXPECT_TRUE(retire_checkpoints(folder_, 1).empty());
  EXPECT_EQ(names().size(), 3u);
  EXPECT_EQ(newest(), "step-00000002");
}

TEST_F(CheckpointTest, OrderIsByStepNotByName) {
  for (int64_t step : {99999999, 100000000, 7}) save(step);
  EXPECT_EQ(newest(), "step-100000000");
  fs::create_directory(folder_ + "/step-abc");
  fs::create_directory(folder_ + "/step-5.tmp");
  EXPECT_EQ(list_checkpoints(folder_).size(), 3u);
}

}  // namespace
}  // namespace huajin
