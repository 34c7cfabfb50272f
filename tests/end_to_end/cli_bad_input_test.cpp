// Gate G-9: what is wrong with a command, a recipe, data or a file is said in one line that names it and the fix, with exit code 2 (usage) or 3
// (damaged), before step 1, and nothing is lost.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "huajin/io/test_jpeg.h"
#include "tests/end_to_end/cli_program.h"

namespace huajin::test {
namespace {

namespace fs = std::filesystem;

struct BadInput {
  const char* name;
  std::vector<std::string> arguments;
  int code;
  std::vector<std::string> parts;  // that the line must have
};

std::string header_only(uint64_t length, const std::string& json) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + json;
}
std::string safetensors(const std::string& json, size_t data) { return header_only(json.size(), json) + std::string(data, '\0'); }

void flip_byte(const std::string& path, double where) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(0, std::ios::end);
  const auto at = static_cast<std::streamoff>(where * static_cast<double>(file.tellg()));
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 0x10));
}

// Class folders of grey JPEGs, 16 x 16; the first `broken` of each class are cut in half. Some of another size.
void image_folder(const TemporaryFolder& folder, const std::string& name, int images, int broken, int large = 0) {
  for (const char* kind : {"cat", "dog"})
    for (int i = 0; i < images; ++i) {
      const int64_t side = i >= images - large ? 20 : 16;
      Image image;
      image.height = image.width = side, image.channels = 1;
      for (int64_t p = 0; p < side * side; ++p) image.pixels.push_back(static_cast<uint8_t>((p * (kind[0] == 'c' ? 7 : 3) + i * 11) % 251));
      const std::string file = jpeg_of(image, 90);
      folder.write(name + "/" + kind + "/" + std::to_string(i) + ".jpg", i < broken ? file.substr(0, file.size() / 2) : file);
    }
}
// A JPEG of few bytes that says it is 65,500 pixels high and wide.
std::string image_bomb() {
  Image image;
  image.height = image.width = 16, image.channels = 1;
  image.pixels.assign(256, 7);
  std::string file = jpeg_of(image, 90);
  const size_t size = file.find("\xff\xc0") + 5;
  for (const size_t at : {size, size + 2}) file[at] = static_cast<char>(0xff), file[at + 1] = static_cast<char>(0xdc);
  return file;
}

// One finished run of two steps, and files that are wrong in every way; shared by all tests here.
class Place {
 public:
  Place() {
    text = folder.write("good.txt", words(20000));
    runs = folder.path() + "/runs";
    first = run_huajin(train({"--run", "done"}));
    fs::create_directories(folder.path() + "/empty_folder");
    folder.write("binary_folder/a.bin", std::string(1000, '\0'));
    folder.write("empty.txt", "");
    folder.write("short.txt", "to be");
    folder.write("latin1.txt", words(5000) + "caf\xe9 and more" + words(5000, 2));
    folder.write("r/unknown.toml", "[batch]\nrosw = 4\n");
    folder.write("r/type.toml", "seed = 1\n[batch]\nrows = \"four\"\n");
    folder.write("r/range.toml", "[batch]\n\nrows = 0\n");
    folder.write("r/broken.toml", "[batch\nrows = 4\n");
    folder.write("r/bracket.toml", "seed = 1\n[\n");
    folder.write("r/binary.toml", std::string("\x00\x01\xff", 3));
    folder.write("r/table.toml", "[optimizr]\nlearning_rate = 1\n");
    folder.write("r/technique.toml", "techniques = [\"samm\"]\n");
    folder.write("m/none/readme.txt", "no weights");
    folder.write("m/huge/model.safetensors", header_only(uint64_t{1} << 60, "{}"));
    folder.write("m/short/model.safetensors", "abc");
    folder.write("m/overlap/model.safetensors",
                 safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12));
    folder.write("m/outside/model.safetensors", safetensors(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 8));
    folder.write("m/deep/model.safetensors", safetensors(std::string(100000, '['), 8));
    folder.write("m/wrap/model.safetensors", safetensors(R"({"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})", 4));
    folder.write("m/traverse/model.safetensors.index.json", R"({"metadata":{},"weight_map":{"a":"../../good.txt"}})");
    folder.write("m/other/model.safetensors", safetensors(R"({"a.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8));
    for (auto* kind : {"none", "huge", "short", "overlap", "outside", "deep", "wrap", "traverse", "other"})
      fs::copy_file(checkpoint() + "/model/config.json", folder.path() + "/m/" + kind + "/config.json", failed);
    damaged("flipped", [](const std::string& c) { flip_byte(c + "/model/model.safetensors", 0.7); });
    damaged("flipped_state", [](const std::string& c) { flip_byte(c + "/state.safetensors", 0.9); });
    damaged("truncated",
            [](const std::string& c) { fs::resize_file(c + "/model/model.safetensors", fs::file_size(c + "/model/model.safetensors") / 2); });
    damaged("no_manifest_hash", [](const std::string& c) { flip_byte(c + "/manifest.json", 0.5); });
    damaged("missing_file", [](const std::string& c) { fs::remove(c + "/state.json"); });
    fs::create_directories(runs + "/without/checkpoints");
    folder.write("runs/without/recipe.toml", read_text(runs + "/done/recipe.toml"));
    folder.write("idx/train-images-idx3-ubyte", std::string("\x00\x00\x09\x09", 4) + std::string(100, '\0'));
    folder.write("idx/train-labels-idx1-ubyte", std::string("\x00\x00\x08\x01\x00\x00\x00\x02\x00\x01", 10));
    folder.write("one.txt", "a");
    fs::create_symlink("self", folder.path() + "/self", failed);
    fs::create_directories(folder.path() + "/locked/inside");
    folder.write("locked/a.txt", words(20000));
    fs::permissions(folder.path() + "/locked/inside", fs::perms::none, failed);
    image_folder(folder, "few_damaged", 40, 1, 2);
    image_folder(folder, "many_damaged", 20, 5);
    image_folder(folder, "one_image", 1, 0);
    image_folder(folder, "bombs", 5, 0);
    for (int i = 0; i < 5; ++i) folder.write("bombs/cat/bomb" + std::to_string(i) + ".jpg", image_bomb());
    mkfifo((folder.path() + "/fifo").c_str(), 0600);
  }
  std::string path(const std::string& name) const { return folder.path() + "/" + name; }
  std::string checkpoint() const {
    const auto names = names_in(runs + "/done/checkpoints");
    return names.empty() ? runs : runs + "/done/checkpoints/" + names.back();
  }
  std::vector<std::string> train(std::vector<std::string> more) const {
    std::vector<std::string> all{"train", "--data", text, "--runs-dir", runs, "--budget", "2step", "--quiet", "--set", "model.layers=1"};
    for (auto* set : {"model.width=32", "model.heads=2", "batch.rows=2", "batch.length=16"}) all.insert(all.end(), {"--set", set});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::vector<std::string> with_data(const std::string& data, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--data", data});
    auto all = train({});
    all.erase(all.begin() + 1, all.begin() + 3);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::vector<std::string> set(const std::string& key_value) const { return train({"--set", key_value}); }

  TemporaryFolder folder;
  std::string text, runs;
  Ran first;

 private:
  void damaged(const std::string& name, const std::function<void(const std::string&)>& damage) {
    fs::copy(runs + "/done", runs + "/" + name, fs::copy_options::recursive, failed);
    for (auto& checkpoint_name : names_in(runs + "/" + name + "/checkpoints")) damage(runs + "/" + name + "/checkpoints/" + checkpoint_name);
  }
  std::error_code failed;
};

Place& place() {
  static Place shared;
  return shared;
}

std::vector<BadInput> data_cases() {
  const Place& p = place();
  const auto images = [&](const char* name, std::vector<std::string> more = {}) {
    std::vector<std::string> all{"train", "--data", p.path(name), "--runs-dir", p.runs, "--budget", "2step", "--quiet", "--cache-dir", p.path("cache")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  return {
      {"no such path", p.with_data("/no/such.txt"), 2, {"/no/such.txt"}},
      {"path through a file", p.with_data(p.text + "/inner.txt"), 2, {"good.txt/inner.txt"}},
      {"empty file", p.with_data(p.path("empty.txt")), 2, {"empty.txt"}},
      {"folder without files", p.with_data(p.path("empty_folder")), 2, {"empty_folder"}},
      {"folder of binary junk", p.with_data(p.path("binary_folder")), 2, {"binary_folder"}},
      {"shorter than a context", p.with_data(p.path("short.txt")), 2, {"short.txt", "batch.length"}},
      {"invalid UTF-8 for characters", p.with_data(p.path("latin1.txt"), {"--set", "data.tokenizer=characters"}), 2, {"latin1.txt", "5003", "bytes"}},
      {"a device", p.with_data("/dev/zero"), 2, {"/dev/zero"}},
      {"a pipe", p.with_data(p.path("fifo")), 2, {"fifo"}},
      {"one byte", p.with_data(p.path("one.txt")), 2, {"one.txt", "batch.length"}},
      {"a link to itself", p.with_data(p.path("self")), 2, {"self"}},
      {"length above the data", p.train({"--set", "batch.length=32768"}), 2, {"good.txt", "batch.length"}},
      {"validation shorter than one token", p.train({"--val", p.path("empty.txt")}), 2, {"empty.txt"}},
      {"validation of images", p.train({"--val", p.path("few_damaged")}), 2, {"few_damaged", "images", "--val"}},
      {"text to validate images", images("few_damaged", {"--val", p.text}), 2, {"data.validation", "good.txt", "images"}},
      {"damaged JPEGs", images("many_damaged"), 3, {"many_damaged", "10 of 40", "5 %", "cat/0.jpg"}},
      {"image bombs", images("bombs"), 3, {"bombs/cat/bomb0.jpg", "65500 x 65500", "allowed"}},
      {"one image a class", images("one_image"), 2, {"one_image", "to validate"}},
      {"text model for images", images("few_damaged", {"--set", "model=llama"}), 2, {"llama", "few_damaged"}},
      {"validation missing", p.train({"--val", "/no/val.txt"}), 2, {"/no/val.txt"}},
      {"validation empty", p.train({"--val", p.path("empty.txt")}), 2, {"empty.txt"}},
      {"text as images",
       {"train", "--data", p.text, "--runs-dir", p.runs, "--budget", "2step", "--quiet", "--set", "data.kind=images"},
       2,
       {"good.txt"}},
      {"unknown tokenizer", p.set("data.tokenizer=bpee"), 2, {"data.tokenizer", "bpee", "did you mean \"bpe\""}},
      {"gpt2 without its folder", p.set("data.tokenizer=gpt2"), 2, {"data.tokenizer_folder"}},
      {"tokenizer folder missing", p.set("data.tokenizer_folder=/no/tokenizer"), 2, {"/no/tokenizer"}},
      {"vocabulary too small", p.set("data.vocabulary=12"), 2, {"data.vocabulary = 12", "at least 257"}},
      {"wrong IDX magic", {"train", "--data", p.path("idx"), "--runs-dir", p.runs, "--budget", "2step", "--quiet"}, 3, {"train-images-idx3-ubyte"}},
  };
}

std::vector<BadInput> recipe_cases() {
  const Place& p = place();
  const auto recipe = [&](const char* name) { return p.train({"--recipe", p.path(std::string("r/") + name)}); };
  return {
      {"no recipe file", recipe("none.toml"), 2, {"none.toml"}},
      {"recipe is a folder", p.train({"--recipe", p.path("r")}), 2, {"/r"}},
      {"unknown key", recipe("unknown.toml"), 2, {"unknown.toml:2", "batch.rosw", "did you mean \"rows\""}},
      {"wrong type", recipe("type.toml"), 2, {"type.toml:3", "batch.rows", "whole number"}},
      {"out of range", recipe("range.toml"), 2, {"range.toml:3", "batch.rows = 0", "at least 1"}},
      {"not TOML", recipe("broken.toml"), 2, {"broken.toml:1", "TOML"}},
      {"binary recipe", recipe("binary.toml"), 2, {"binary.toml"}},
      {"unknown table", recipe("table.toml"), 2, {"table.toml:1", "did you mean \"optimizer\""}},
      {"unknown technique", recipe("technique.toml"), 2, {"technique.toml:1", "samm", "did you mean \"sam\""}},
      {"set without value", p.set("batch.rows"), 2, {"key=value"}},
      {"set of an unknown key", p.set("optimizer.lerning_rate=1"), 2, {"--set", "lerning_rate", "did you mean \"learning_rate\""}},
      {"set of an unknown table", p.set("smaa.rho=1"), 2, {"--set", "smaa"}},
      {"set of a negative", p.set("optimizer.learning_rate=-1"), 2, {"learning_rate", "-1", "greater than 0"}},
      {"set of NaN", p.set("optimizer.learning_rate=nan"), 2, {"learning_rate", "finite"}},
      {"unknown optimizer", p.set("optimizer=adamv"), 2, {"adamv", "did you mean \"adamw\""}},
      {"unknown schedule", p.set("schedule=linaer"), 2, {"linaer", "did you mean \"linear\""}},
      {"unknown model", p.set("model=lama"), 2, {"lama", "did you mean \"llama\""}},
      {"optimizer as a technique", p.set("techniques=[\"adamw\"]"), 2, {"adamw", "optimizer=adamw"}},
      {"technique twice", p.set("techniques=[\"sam\",\"sam\"]"), 2, {"sam", "twice"}},
      {"heads that do not divide", p.set("model.heads=5"), 2, {"model", "5", "32"}},
      {"image model for text", p.set("model=small_cnn"), 2, {"small_cnn"}},
      {"warm-up longer than the run", p.train({"--set", "schedule=wsd", "--set", "schedule.warmup_steps=10"}), 2, {"warmup_steps", "10", "2"}},
      {"plateau without evaluations", p.set("schedule=plateau"), 2, {"evaluation.every", "plateau", "100step"}},
      {"milestones that fall", p.train({"--set", "schedule=step", "--set", "schedule.milestones=0.7, 0.5"}), 2, {"milestones", "0.7, 0.5", "rise"}},
      {"average into a folder that is there", {"average", "done", "--runs-dir", p.runs, "--out", p.runs}, 2, {"there already", "--out"}},
      {"average with nothing to choose on", {"average", p.path("m/other"), "--greedy", "--out", p.path("soup")}, 2, {"--greedy", "m/other"}},
      {"average nothing", {"average", "nothing", "--runs-dir", p.runs, "--out", p.path("soup")}, 2, {"nothing"}},
      {"precision unknown", p.set("precision=bf61"), 2, {"precision", "bf61", "bf16"}},
      {"ranks that were not started", p.set("layout.data=2"), 2, {"layout.data", "2", "mpirun"}},
      {"checkpoint cadence", p.set("checkpoint.every=often"), 2, {"checkpoint.every", "often"}},
      {"evaluation cadence", p.set("evaluation.every=60s"), 2, {"evaluation.every", "60s", "step"}},
      {"set of infinity", p.set("optimizer.learning_rate=inf"), 2, {"learning_rate", "inf", "finite"}},
      {"number above float32", p.set("optimizer.learning_rate=1e300"), 2, {"learning_rate", "1e+300", "at most 3.4e+38"}},
      {"rows beyond all bounds", p.set("batch.rows=9000000000000000000"), 2, {"batch.rows", "at most"}},
      {"number of 60 digits", p.set("batch.rows=" + std::string(60, '9')), 2, {"batch.rows", "whole number"}},
      {"layers beyond all bounds", p.set("model.layers=1000000000"), 2, {"model.layers", "at most 1024"}},
      {"model larger than the machine", p.train({"--set", "model.width=1048576", "--set", "model.layers=1024"}), 2, {"model", "GB", "model.width"}},
      {"length longer than memory", p.set("batch.length=999999999"), 2, {"batch.length", "at most"}},
      {"option that is none", p.train({"--budgte", "2step"}), 2, {"--budgte", "did you mean --budget"}},
      {"option without value", p.train({"--data"}), 2, {"--data"}},
      {"empty option", p.train({"--run", ""}), 2, {"--run", "empty"}},
      {"empty budget", p.train({"--budget", ""}), 2, {"--budget", "empty"}},
      {"threads NaN", p.train({"--threads", "nan"}), 2, {"--threads", "nan", "whole number"}},
      {"threads beyond bounds", p.train({"--threads", "99999"}), 2, {"--threads 99999", "at most 4096"}},
      {"seed with a fraction", p.train({"--seed", "1.5"}), 2, {"--seed", "1.5", "whole number"}},
      {"seed negative", p.train({"--seed", "-7"}), 2, {"--seed -7", "at least 0"}},
      {"budget NaN", p.train({"--budget", "nans"}), 2, {"--budget", "nans", "500step"}},
      {"budget infinite", p.train({"--budget", "1e999s"}), 2, {"--budget", "1e999s", "500step"}},
      {"budget gone before it begins", p.train({"--budget", "0.01s"}), 2, {"budget of 0.01s", "give at least"}},
      {"unbalanced bracket", recipe("bracket.toml"), 2, {"bracket.toml:2", "TOML"}},
      {"budget without unit", p.train({"--budget", "10"}), 2, {"--budget", "\"10\"", "unit"}},
      {"budget negative", p.train({"--budget=-5s"}), 2, {"--budget", "negative"}},
      {"budget unknown unit", p.train({"--budget", "5parsec"}), 2, {"parsec", "500step"}},
      {"budget zero", p.train({"--budget", "0s"}), 2, {"greater than 0"}},
      {"no CUDA here", p.train({"--device", "cuda"}), 2, {"cuda", "--device cpu"}},
  };
}

std::vector<BadInput> file_cases() {
  const Place& p = place();
  const auto from = [&](const char* name) { return p.train({"--init-from", p.path(std::string("m/") + name)}); };
  const auto of = [&](const char* command, const char* run) { return std::vector<std::string>{command, run, "--runs-dir", p.runs}; };
  return {
      {"init from nowhere", p.train({"--init-from", "/no/model"}), 2, {"/no/model"}},
      {"init without weights", from("none"), 2, {"m/none"}},
      {"header length huge", from("huge"), 3, {"huge/model.safetensors"}},
      {"file of three bytes", from("short"), 3, {"short/model.safetensors"}},
      {"offsets overlap", from("overlap"), 3, {"overlap/model.safetensors"}},
      {"offsets outside", from("outside"), 3, {"outside/model.safetensors"}},
      {"deep JSON", from("deep"), 3, {"deep/model.safetensors"}},
      {"shape wraps around", from("wrap"), 3, {"wrap/model.safetensors"}},
      {"path traversal in an index", from("traverse"), 3, {"traverse", "../../good.txt"}},
      {"weights of another model", from("other"), 2, {"m/other", "another model"}},
      {"unwritable runs folder", p.train({"--runs-dir", "/proc/huajin"}), 2, {"/proc/huajin"}},
      {"runs folder is a file", p.train({"--runs-dir", p.text}), 2, {"good.txt"}},
      {"run is there already", p.train({"--run", "done"}), 2, {"done", "resume"}},
      {"run name with a path", p.train({"--run", "../elsewhere"}), 2, {"../elsewhere"}},
      {"resume nothing", of("resume", "nothing"), 2, {"nothing"}},
      {"resume without checkpoint", of("resume", "without"), 2, {"without"}},
      {"resume a flipped bit", of("resume", "flipped"), 3, {"flipped"}},
      {"resume a flipped state", of("resume", "flipped_state"), 3, {"flipped_state"}},
      {"resume truncated", of("resume", "truncated"), 3, {"truncated"}},
      {"resume a changed manifest", of("resume", "no_manifest_hash"), 3, {"no_manifest_hash"}},
      {"resume with a file missing", of("resume", "missing_file"), 3, {"missing_file"}},
      {"verify a flipped bit", {"verify", "flipped", "--runs-dir", p.runs, "--json"}, 3, {"flipped", "model.safetensors"}},
      {"verify truncated", {"verify", "truncated", "--runs-dir", p.runs, "--json"}, 3, {"truncated", "model.safetensors"}},
      {"eval damaged", of("eval", "truncated"), 3, {"truncated"}},
      {"generate damaged", of("generate", "truncated"), 3, {"truncated"}},
      {"generate without runs", {"generate", "--runs-dir", p.path("empty_folder")}, 2, {"empty_folder"}},
      {"compare an unfinished run", {"compare", "done", "without", "--runs-dir", p.runs}, 2, {"without", "resume"}},
      {"plan of an unfinished run", of("plan", "without"), 2, {"without"}},
      {"inspect nothing", {"data", "inspect", "/no/data"}, 2, {"/no/data"}},
      {"bench an unknown model", {"bench", "step", "gpt2-125m"}, 2, {"gpt2-125m", "did you mean"}},
      {"bench a model of images", {"bench", "step", "resnet"}, 2, {"resnet"}},
  };
}

class CliBadInput : public testing::TestWithParam<std::vector<BadInput> (*)()> {};

TEST_P(CliBadInput, OneLineNamesItAndTheFix) {
  ASSERT_EQ(place().first.code, 0) << place().first.err;
  const std::string hash = read_text(place().runs + "/done/result.json");
  for (const BadInput& bad : GetParam()()) {
    SCOPED_TRACE(bad.name);
    const auto before = names_in(place().runs);
    HowToRun how;
    how.timeout_seconds = 60;
    const Ran ran = run_huajin(bad.arguments, how);
    EXPECT_EQ(ran.code, bad.code) << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_LT(ran.err.size(), 450u) << ran.err;
    for (auto& part : bad.parts) EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err << "lacks " << part;
    for (auto* noise : {"INTERNAL ASSERT", "frame #", "terminate called", "Exception raised", "fault of huajin"})
      EXPECT_EQ(ran.err.find(noise), std::string::npos) << ran.err;
    EXPECT_EQ(names_in(place().runs), before) << "something was left, or lost";
  }
  EXPECT_EQ(read_text(place().runs + "/done/result.json"), hash);
  EXPECT_EQ(run_huajin({"verify", "done", "--runs-dir", place().runs}).code, 0);
}
INSTANTIATE_TEST_SUITE_P(Data, CliBadInput, testing::Values(data_cases));
INSTANTIATE_TEST_SUITE_P(Recipes, CliBadInput, testing::Values(recipe_cases));
INSTANTIATE_TEST_SUITE_P(Files, CliBadInput, testing::Values(file_cases));

// A few damaged images are left out and counted; the second run, from the packed file, says so too.
TEST(CliHardInput, AFewDamagedImagesAreLeftOutAndCounted) {
  const Place& p = place();
  for (const char* quiet : {"--quiet", "--threads=2"}) {
    const Ran ran = run_huajin({"train", "--data", p.path("few_damaged"), "--runs-dir", p.path("image_runs"), "--budget", "2step", quiet, "--cache-dir", p.path("cache")});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.err.find("few_damaged: 2 of 80 images are damaged and left out; the first: "), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("cat/0.jpg"), std::string::npos) << ran.err;
    if (std::string(quiet) == "--quiet") continue;
    EXPECT_NE(ran.err.find("; 4 of another size scaled to it; 2 damaged ones left out"), std::string::npos) << ran.err;
  }
}

// Part of a folder that can't be read is no smaller corpus.
TEST(CliHardInput, AFolderThatCannotBeReadIsRefused) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads every folder";
  const Place& p = place();
  const Ran ran = run_huajin(p.with_data(p.path("locked")));
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_NE(ran.err.find("locked/inside"), std::string::npos) << ran.err;
}

class SmallDisk {
 public:
  SmallDisk(const TemporaryFolder& folder, const char* size) : path_(folder.path() + "/disk") {
    fs::create_directories(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, size) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount(path_.c_str());
  }
  bool mounted() const { return mounted_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST(CliHardInput, ADiskTooSmallForTheCheckpointsIsSaidBeforeTheFirstStep) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder, "size=1m");
  if (!disk.mounted()) GTEST_SKIP() << "a tmpfs can't be mounted here";
  const Ran ran = run_huajin(place().train({"--runs-dir", disk.path() + "/runs"}));
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  for (auto* part : {"disk/runs", "MB", "checkpoint"}) EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  EXPECT_TRUE(names_in(disk.path() + "/runs").empty());
}

TEST(CliHardInput, ADiskTooSmallForThePackedImagesIsSaidInOneLine) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder, "size=16k");
  if (!disk.mounted()) GTEST_SKIP() << "a tmpfs can't be mounted here";
  const Ran ran = run_huajin({"train", "--data", place().path("few_damaged"), "--runs-dir", place().path("image_runs2"), "--budget", "2step", "--quiet", "--cache-dir", disk.path()});
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_NE(ran.err.find("/disk/images"), std::string::npos) << ran.err;
  EXPECT_TRUE(names_in(disk.path() + "/images").empty());
  EXPECT_TRUE(names_in(place().path("image_runs2")).empty());
}

TEST(CliHardInput, AHugeFileOfOneCharacterTakesBoundedMemory) {
  const TemporaryFolder folder;
  const std::string text = folder.write("a.txt", std::string(32 << 20, 'a'));
  const Ran ran = run_huajin({"train", "--data", text, "--runs-dir", folder.path() + "/runs", "--budget", "2step", "--quiet", "--set",
                              "data.tokenizer=bpe", "--set", "evaluation.every=never", "--set", "model.layers=1"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_LT(ran.peak_rss_mb, 1200);
}

// 200 MB of text: tokenized, and trained on, without being held in memory. What both take is compared with the same on a small file.
TEST(CliHardInput, ACorpusLargerThanWhatIsHeldInMemory) {
  const TemporaryFolder folder;
  const std::string small = folder.write("small.txt", words(1 << 20));
  std::string large = words(20 << 20);
  {
    std::ofstream file(folder.path() + "/large.txt", std::ios::binary);
    for (int i = 0; i < 10; ++i) file << large;
  }
  const auto tokenize = [&](const std::string& name, const std::string& tokenizer) {
    return run_huajin({"data", "tokenize", folder.path() + "/" + name + ".txt", "--tokenizer", tokenizer, "--vocabulary", "512", "--out", folder.path() + "/" + name + "." + tokenizer});
  };
  const auto train = [&](const std::string& name) {
    return run_huajin({"train", "--data", folder.path() + "/" + name, "--runs-dir", folder.path() + "/runs", "--budget", "50step", "--quiet", "--set", "evaluation.every=never",
                       "--set", "model=llama", "--set", "model.layers=1", "--set", "model.width=32", "--set", "batch.length=32", "--set", "batch.rows=4"});
  };
  for (auto* tokenizer : {"bytes", "bpe"}) {
    const Ran little = tokenize("small", tokenizer), much = tokenize("large", tokenizer);
    ASSERT_EQ(little.code, 0) << little.err;
    ASSERT_EQ(much.code, 0) << much.err;
    EXPECT_LT(much.peak_rss_mb - little.peak_rss_mb, 110) << tokenizer << ": a shard is 32 MB; 32 MB are looked at for a vocabulary";
  }
  EXPECT_EQ(names_in(folder.path() + "/large.bytes").size(), 13u);
  const Ran little = train("small.bytes"), much = train("large.bytes");  // 2 and 400 MB of token files
  ASSERT_EQ(little.code, 0) << little.err;
  ASSERT_EQ(much.code, 0) << much.err;
  EXPECT_LT(much.peak_rss_mb - little.peak_rss_mb, 100);
}

TEST(CliHardInput, TwoProcessesOnOneRunFolder) {
  const Place& p = place();
  HowToRun how;
  Ran second;
  how.meanwhile = [&](pid_t) {
    for (int i = 0; i < 100 && !fs::exists(p.runs + "/shared/log.jsonl"); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    second = run_huajin({"resume", "shared", "--runs-dir", p.runs});
  };
  const Ran ran = run_huajin(p.train({"--run", "shared", "--budget", "6s"}), how);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(second.code, 2) << second.err;
  EXPECT_NE(second.err.find("shared"), std::string::npos) << second.err;
  EXPECT_EQ(std::count(second.err.begin(), second.err.end(), '\n'), 1) << second.err;
  EXPECT_EQ(run_huajin({"verify", "shared", "--runs-dir", p.runs}).code, 0);
}

}  // namespace
}  // namespace huajin::test
