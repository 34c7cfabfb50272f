// Hugging Face folders. Beside the tests that always run, with HUAJIN_HF_DIR set (tests/end_to_end/transformers_equal.py does) this program reads the
// folders theirs-* that transformers wrote there and writes ours-* for transformers to read; each has probe.safetensors with ids and logits.
#include "huajin/zoo/hugging_face.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "huajin/core/checkpoint.h"
#include "huajin/core/communicator.h"
#include "huajin/core/errors.h"
#include "huajin/io/file.h"
#include "huajin/io/safetensors.h"
#include "huajin/zoo/gpt2.h"
#include "huajin/zoo/llama.h"
#include "huajin/zoo/test_model.h"

namespace huajin {
namespace {

class NoTokens : public Source {
 public:
  bool classifies() const override { return false; }
  int64_t size() const override { return 1; }
  int64_t classes() const override { return 29; }
  int64_t units_per_row(int64_t length) const override { return length; }
  Tensor ids(uint64_t, int64_t, int64_t rows, int64_t) const override { return at::zeros({rows}, at::kLong); }
  Examples load(const Tensor&, int64_t, const Tensor&, int64_t, bool) const override { return {}; }
};
struct Still : Technique {
  std::string_view name() const override { return "still"; }
  struct Rule : Optimizer {
    void step(std::span<Parameter* const>) override {}
    double learning_rate() const override { return 0; }
  };
  struct Flat : Schedule {
    double factor(const Progress&) const override { return 1; }
  };
  void setup(Session& s) override {
    s.set_optimizer(std::make_unique<Rule>());
    s.set_schedule(std::make_unique<Flat>());
  }
};

std::unique_ptr<RunSession> session_of(Model model) {
  std::vector<std::unique_ptr<Technique>> techniques;
  techniques.push_back(std::make_unique<Still>());
  auto session = std::make_unique<RunSession>(std::make_unique<Model>(std::move(model)), std::make_shared<NoTokens>(), std::move(techniques),
                                              single_process(), SessionOptions{});
  session->build();
  return session;
}

TensorToStore stored(const std::string& name, const Tensor& t) {
  return {name, stored_dtype(t.scalar_type()), t.sizes().vec(), t.const_data_ptr(), t.nbytes()};
}

// Writes the folder and returns the logits of `ids`.
Tensor write_model(const std::string& folder, Model model, const Tensor& ids) {
  TestModel m(std::move(model), at::kFloat);
  m.shake(0.1);
  at::NoGradGuard off;
  m.forward.training = false;
  const Tensor logits = m(ids).contiguous();
  make_folder(folder);
  std::vector<TensorToStore> tensors;
  for (size_t i = 0; i < m.entries.size(); ++i) tensors.push_back(stored(m.entries[i].name, m.values[i]));
  remove_tree(folder + "/model.safetensors");
  remove_tree(folder + "/probe.safetensors");
  write_safetensors(folder + "/model.safetensors", tensors, {{"format", "pt"}});
  write_atomically(folder + "/config.json", m.model.config_json);
  write_safetensors(folder + "/probe.safetensors", {stored("ids", ids), stored("logits", logits)});
  return logits;
}

// Largest difference of the folder's model, read and run by huajin, from the logits in its probe.
double difference_to_probe(const std::string& folder) {
  auto session = session_of(model_of_folder(folder));
  load_weights(*session, Safetensors(folder));
  const Safetensors probe(folder + "/probe.safetensors");
  const Tensor logits = session->execution().logits(to_tensor(*probe.find("ids"), "ids"), nullptr, 0);
  return (logits - to_tensor(*probe.find("logits"), "logits")).abs().max().item<double>();
}

const std::pair<const char*, std::function<Model()>> kOurs[] = {
    {"gpt2", [] { return gpt2({.vocabulary = 29, .context = 20, .layers = 2, .heads = 3, .width = 24, .dropout = 0.1}); }},
    {"llama",
     [] { return llama({.vocabulary = 29, .context = 20, .layers = 2, .heads = 4, .width = 24, .kv_heads = 2, .rope_base = 500, .tied = false}); }},
    {"llama-tied", [] { return llama({.vocabulary = 29, .context = 20, .layers = 2, .heads = 2, .width = 24}); }},
    {"qwen3",
     [] { return llama({.vocabulary = 29, .context = 20, .layers = 2, .heads = 4, .width = 24, .kv_heads = 1, .head_size = 10, .qk_norm = true}); }},
};

TEST(HuggingFace, FoldersReadBackAsTheSameModel) {
  const char* given = std::getenv("HUAJIN_HF_DIR");
  const std::string root = given ? given : testing::TempDir() + "huajin_hf";
  for (auto& [name, make_model] : kOurs) {
    const std::string folder = root + "/ours-" + name;
    write_model(folder, make_model(), at::randint(29, {2, 17}, at::kLong));
    EXPECT_LE(difference_to_probe(folder), 1e-6) << name;
  }
  if (!given) remove_tree(root);
}

TEST(HuggingFace, ReadsWhatTransformersWrote) {
  const char* root = std::getenv("HUAJIN_HF_DIR");
  if (root == nullptr) GTEST_SKIP() << "tests/end_to_end/transformers_equal.py runs this with folders that transformers wrote";
  int folders = 0;
  for (auto& entry : std::filesystem::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("theirs-")) continue;
    ++folders;
    const double difference = difference_to_probe(entry.path().string());
    std::printf("%s: largest difference %.2g\n", name.c_str(), difference);
    EXPECT_LE(difference, 1e-4) << name;
  }
  EXPECT_GE(folders, 1);
}

std::string refusal(const std::string& config, int* code) {
  try {
    model_of_config(config, "f/config.json");
  } catch (const Error& error) {
    *code = error.code();
    return error.what();
  }
  return "";
}

TEST(HuggingFace, RefusesWhatItDoesNotCompute) {
  const std::string llama =
      R"("model_type":"llama","vocab_size":9,"hidden_size":8,"intermediate_size":8,"num_hidden_layers":1,"num_attention_heads":2)";
  struct Case {
    std::string config;
    int code;
    const char* part;
  };
  const Case cases[] = {
      {R"({"model_type":"mamba"})", kExitUsage, "gpt2, llama, qwen3, vit"},
      {R"({"hidden_size":8})", kExitDamaged, "model_type"},
      {R"([1])", kExitDamaged, "object"},
      {R"({"model_type":"gpt2",)", kExitDamaged, "f/config.json"},
      {R"({"model_type":"gpt2","activation_function":"relu"})", kExitUsage, "gelu_new"},
      {R"({"model_type":"gpt2","scale_attn_by_inverse_layer_idx":true})", kExitUsage, "scale_attn_by_inverse_layer_idx"},
      {R"({"model_type":"gpt2","n_layer":-1})", kExitDamaged, "n_layer"},
      {R"({"model_type":"gpt2","n_embd":99999999999})", kExitDamaged, "n_embd"},
      {R"({"model_type":"gpt2","n_embd":10,"n_head":3})", kExitUsage, "heads"},
      {R"({"model_type":"gpt2","resid_pdrop":7})", kExitDamaged, "resid_pdrop"},
      {"{" + llama + R"(,"hidden_act":"gelu"})", kExitUsage, "hidden_act"},
      {"{" + llama + R"(,"attention_bias":true})", kExitUsage, "attention_bias"},
      {"{" + llama + R"(,"rope_scaling":{"rope_type":"llama3","factor":8.0}})", kExitUsage, "llama3"},
      {"{" + llama + R"(,"rope_parameters":[1]})", kExitDamaged, "rope_parameters"},
      {"{" + llama + R"(,"num_key_value_heads":"two"})", kExitDamaged, "num_key_value_heads"},
      {"{" + llama + R"(,"num_key_value_heads":3})", kExitUsage, "kv_heads"},
  };
  for (auto& c : cases) {
    int code = 0;
    const std::string message = refusal(c.config, &code);
    EXPECT_EQ(code, c.code) << c.config << " " << message;
    EXPECT_NE(message.find(c.part), std::string::npos) << c.config << " " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  int code = 0;
  EXPECT_EQ(refusal("{" + llama + R"(,"rope_scaling":null,"rope_theta":500000.0})", &code), "");
}

}  // namespace
}  // namespace huajin
