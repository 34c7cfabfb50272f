// Distillation from the command line: a run, a checkpoint or a model's folder teaches; what cannot teach is refused with a line that says why.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "huajin/io/safetensors.h"
#include "tests/end_to_end/cli_program.h"

namespace huajin::test {
namespace {

class CliDistillation : public testing::Test {
 protected:
  Ran train(const std::string& name, const std::string& text, std::vector<std::string> sets) {
    std::vector<std::string> all{"train", "--data", text, "--runs-dir", runs_, "--budget", "20step", "--run", name, "--quiet"};
    sets.insert(sets.begin(), {"model.layers=1", "model.heads=2", "batch.rows=4", "batch.length=32"});
    for (auto& set : sets) all.insert(all.end(), {"--set", set});
    return run_huajin(all);
  }
  Ran learn(const std::string& name, const std::string& teacher) {
    return train(name, text_, {"model.width=16", "data.tokenizer=bytes", "techniques=[\"distillation\"]", "distillation.teacher=" + teacher});
  }
  std::string checkpoint(const std::string& run) const { return json_value(read_text(runs_ + "/" + run + "/result.json"), "checkpoint"); }
  void teach() {
    const Ran ran = train("teacher", text_, {"model.width=32", "data.tokenizer=bytes"});
    ASSERT_EQ(ran.code, 0) << ran.err;
  }

  TemporaryFolder folder_;
  std::string text_ = folder_.write("text.txt", words(30000));
  std::string runs_ = folder_.path() + "/runs";
};

// Of another width than the student; by name, by checkpoint and by model folder it is the same teacher.
TEST_F(CliDistillation, ARunTeachesByNameCheckpointOrModelFolder) {
  teach();
  for (const auto& [name, teacher] : {std::pair<std::string, std::string>{"a", "teacher"}, {"b", checkpoint("teacher")}, {"c", checkpoint("teacher") + "/model"}}) {
    const Ran ran = learn(name, teacher);
    ASSERT_EQ(ran.code, 0) << ran.err;
  }
  const Ran plain = train("plain", text_, {"model.width=16", "data.tokenizer=bytes"});
  ASSERT_EQ(plain.code, 0) << plain.err;
  const Safetensors a(checkpoint("a") + "/model"), b(checkpoint("b") + "/model"), c(checkpoint("c") + "/model"), alone(checkpoint("plain") + "/model");
  ASSERT_EQ(a.tensors().size(), alone.tensors().size());  // the teacher is not in it
  const Safetensors state(checkpoint("a") + "/state.safetensors"), alone_state(checkpoint("plain") + "/state.safetensors");
  EXPECT_EQ(state.tensors().size(), alone_state.tensors().size());
  bool differs = false;
  for (auto& tensor : a.tensors()) {
    const auto bytes = [&](const Safetensors& from) {
      const StoredTensor& stored = *from.find(tensor.name);
      return std::string(reinterpret_cast<const char*>(stored.data.data()), stored.data.size());
    };
    EXPECT_EQ(bytes(a), bytes(b)) << tensor.name;
    EXPECT_EQ(bytes(a), bytes(c)) << tensor.name;
    differs = differs || bytes(a) != bytes(alone);
  }
  EXPECT_TRUE(differs);
  std::filesystem::remove_all(runs_ + "/teacher");  // who evaluates needs no teacher
  const Ran evaluated = run_huajin({"eval", "a", "--json", "--runs-dir", runs_});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
}

TEST_F(CliDistillation, SaysWhatCannotTeach) {
  teach();
  const auto expect = [&](const Ran& ran, int code, const std::string& part) {
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_NE(ran.err.find("distillation.teacher="), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  };
  expect(learn("missing", "nobody"), 2, "no such folder");
  expect(learn("no_model", folder_.path()), 2, "neither a run nor a model");
  expect(train("vocabulary", text_, {"model.width=16", "data.tokenizer=characters", "techniques=[\"distillation\"]", "distillation.teacher=teacher"}), 2, "a vocabulary of 256 tokens");
  {
    std::fstream file(checkpoint("teacher") + "/model/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-8, std::ios::end);
    file.write("damaged!", 8);
  }
  expect(learn("damaged", checkpoint("teacher")), 3, "model.safetensors");
}

}  // namespace
}  // namespace huajin::test
