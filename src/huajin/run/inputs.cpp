#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "huajin/core/errors.h"
#include "huajin/data/image_source.h"
#include "huajin/data/text_source.h"
#include "huajin/io/file.h"
#include "huajin/io/image_set.h"
#include "huajin/io/text_read.h"
#include "huajin/io/token_shard.h"
#include "huajin/io/tokenizer.h"
#include "huajin/run/run.h"

namespace huajin {
namespace {

std::unique_ptr<Tokenizer> make_tokenizer(const DataSettings& data, std::string_view text) {
  if (!data.tokenizer_folder.empty()) return load_tokenizer(data.tokenizer_folder);
  if (data.tokenizer == "bytes") return byte_tokenizer();
  if (data.tokenizer == "characters") return character_tokenizer(text);
  if (data.tokenizer == "gpt2") throw UserError("data.tokenizer=\"gpt2\": data.tokenizer_folder must name the folder of encoder.json and vocab.bpe");
  if (data.tokenizer == "bpe") return train_bpe(text, data.vocabulary);
  return text.size() < 100000 ? byte_tokenizer() : train_bpe(text, data.vocabulary);
}

std::string amount(double number) {
  return number >= 1e9 ? fmt::format("{:.1f} G", number / 1e9) : number >= 1e6 ? fmt::format("{:.1f} M", number / 1e6) : number >= 1e3 ? fmt::format("{:.0f} k", number / 1e3) : fmt::format("{:.0f} ", number);
}

RunInputs open_text(const Recipe& recipe) {
  const DataSettings& data = recipe.data;
  Corpus corpus = read_corpus(data.path);
  const bool own_validation = !data.validation.empty();
  const size_t cut = own_validation ? corpus.text.size() : last_tenth(corpus.text);
  if (own_validation && data.kind != "text" && is_folder(data.validation) && find_image_layout(data.validation) != ImageLayout::kNone)
    throw UserError(fmt::format("data.validation=\"{}\": holds images, but {} holds text; give text to validate on (--val)", data.validation, data.path));
  const std::string other = own_validation ? read_corpus(data.validation).text : std::string();
  const std::string_view train = std::string_view(corpus.text).substr(0, cut);
  const std::string_view validation = own_validation ? std::string_view(other) : std::string_view(corpus.text).substr(cut);

  RunInputs inputs;
  // Characters of the validation part belong to the vocabulary: nothing is learned from them but that they exist.
  inputs.tokenizer = make_tokenizer(data, data.tokenizer == "characters" && !own_validation ? std::string_view(corpus.text) : train);
  std::vector<uint32_t> tokens, validation_tokens;
  inputs.tokenizer->encode(train, tokens);
  const int64_t length = recipe.batch.length;
  int64_t context = 0;
  if (!own_validation) {  // what stands before the validation part is known when it is predicted
    context = std::min<int64_t>(length, static_cast<int64_t>(tokens.size()));
    validation_tokens.assign(tokens.end() - context, tokens.end());
  }
  inputs.tokenizer->encode(validation, validation_tokens);
  inputs.classes = inputs.tokenizer->vocabulary();
  inputs.train_units = static_cast<int64_t>(tokens.size());
  inputs.validation_units = static_cast<int64_t>(validation_tokens.size()) - context;
  inputs.train_bytes = static_cast<int64_t>(train.size());
  inputs.summary = fmt::format("data: {}{}: {}bytes of text, {}tokens to train on, {}to validate; tokenizer {} with {} tokens", data.path,
                               corpus.skipped.empty() ? "" : fmt::format(" ({} files that are no text skipped)", corpus.skipped.size()), amount(static_cast<double>(corpus.text.size())),
                               amount(static_cast<double>(inputs.train_units)), amount(static_cast<double>(inputs.validation_units)), inputs.tokenizer->kind(), inputs.classes);
  const int64_t overlap = std::clamp<int64_t>(recipe.evaluation.overlap, 1, length);
  inputs.train = std::make_shared<TextSource>(std::move(tokens), inputs.classes, length, data.path);
  inputs.validation = std::make_shared<TextEvaluation>(std::move(validation_tokens), context, inputs.classes, length, length / overlap, static_cast<int64_t>(validation.size()));
  return inputs;
}

TokenStream read_tokens(const std::string& path, const Tokenizer& tokenizer, bool& ours) {
  std::vector<TokenShard> shards = open_token_shards(path);
  for (const TokenShard& shard : shards) {
    shard.require_vocabulary(tokenizer.vocabulary());
    shard.forget();
    ours = ours && shard.header().vocabulary != 0;
  }
  return TokenStream(std::move(shards));
}

// Token files (io/token_shard.h) with the tokenizer that made them. Other programs put tokens between documents that no byte of text stands for: bits per byte
// then have no meaning, so only huajin's own files say how many bytes their validation part has.
RunInputs open_tokens(const Recipe& recipe) {
  const DataSettings& data = recipe.data;
  const bool beside = data.tokenizer_folder.empty() && is_folder(data.path + ".tokenizer");  // where `huajin data tokenize` puts it
  if (data.tokenizer_folder.empty() && !beside)
    throw UserError(fmt::format("{}: token files need the tokenizer that made them; name its folder with --set data.tokenizer_folder=FOLDER", data.path));
  if (!data.validation.empty() && !is_token_shard(data.validation))
    throw UserError(fmt::format("data.validation=\"{}\": no token file, but {} is one; tokenize both alike", data.validation, data.path));
  RunInputs inputs;
  inputs.tokenizer = load_tokenizer(beside ? data.path + ".tokenizer" : data.tokenizer_folder);
  inputs.classes = inputs.tokenizer->vocabulary();
  bool ours = true;
  const TokenStream all = read_tokens(data.path, *inputs.tokenizer, ours);
  const bool own_validation = !data.validation.empty();
  const uint64_t cut = own_validation ? all.size() : all.size() - all.size() / 10;
  const int64_t length = recipe.batch.length, context = own_validation ? 0 : std::min<int64_t>(length, static_cast<int64_t>(cut));
  const TokenStream tokens = all.part(0, cut);
  const TokenStream validation = own_validation ? read_tokens(data.validation, *inputs.tokenizer, ours) : all.part(cut - static_cast<uint64_t>(context), all.size());
  const auto bytes = ours ? static_cast<int64_t>(validation.part(static_cast<uint64_t>(context), validation.size()).bytes(*inputs.tokenizer)) : 0;
  inputs.train_units = static_cast<int64_t>(tokens.size());
  inputs.validation_units = static_cast<int64_t>(validation.size()) - context;
  inputs.summary = fmt::format("data: {}: {}tokens to train on, {}to validate; tokenizer {} with {} tokens", data.path, amount(static_cast<double>(inputs.train_units)),
                               amount(static_cast<double>(inputs.validation_units)), inputs.tokenizer->kind(), inputs.classes);
  const int64_t overlap = std::clamp<int64_t>(recipe.evaluation.overlap, 1, length);
  inputs.train = std::make_shared<TextSource>(tokens, inputs.classes, length, data.path);
  inputs.validation = std::make_shared<TextEvaluation>(validation, context, inputs.classes, length, length / overlap, bytes);
  return inputs;
}

RunInputs open_images(const Recipe& recipe, ImageLayout layout, const std::string& cache) {
  const DataSettings& data = recipe.data;
  if (!data.validation.empty())
    throw UserError(fmt::format("data.validation=\"{}\": images carry their validation part in a folder test or val beside train; leave the key out", data.validation));
  const std::string key = image_set_key(data.path), packed = cache + "/images/" + key + ".huajimg";
  if (!exists(packed)) {
    const ImageSet set = read_image_set(data.path, layout, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
    make_folder(cache + "/images");
    write_packed_images(packed, set, key);
  }
  auto images = std::make_shared<const PackedImages>(packed);
  RunInputs inputs;
  inputs.images = true;
  inputs.classes = static_cast<int64_t>(images->classes().size());
  inputs.class_names = images->classes();
  inputs.channels = images->shape().channels;
  inputs.height = images->shape().height;
  inputs.width = images->shape().width;
  inputs.train_units = images->validation_from();
  inputs.validation_units = images->count() - images->validation_from();
  inputs.summary = fmt::format("data: {}: {} images of {} x {} x {} in {} classes to train on, {} to validate{}{}", data.path, inputs.train_units, inputs.channels, inputs.height,
                               inputs.width, inputs.classes, inputs.validation_units,
                               images->resized() == 0 ? "" : fmt::format("; {} of another size scaled to it", images->resized()),
                               images->damaged() == 0 ? "" : fmt::format("; {} damaged ones left out", images->damaged()));
  if (images->damaged() > 0)
    inputs.warning = fmt::format("{}: {} of {} images are damaged and left out; the first: {}", data.path, images->damaged(), images->damaged() + images->count(),
                                 images->first_damaged().empty() ? "" : images->first_damaged().front());
  inputs.train = std::make_shared<ImageSource>(images, Augmentation{data.translate, data.flip, data.cutout}, static_cast<uint64_t>(recipe.run.seed));
  inputs.validation = std::make_shared<ImageEvaluation>(images);
  return inputs;
}

}  // namespace

RunInputs open_inputs(const Recipe& recipe, const std::string& cache) {
  const DataSettings& data = recipe.data;
  if (data.path.empty()) throw UserError("data.path: empty; give a file or folder with --data");
  if (!exists(data.path)) throw UserError(fmt::format("{}: no such file or folder; check --data", data.path));
  if (data.kind != "images" && is_token_shard(data.path)) return open_tokens(recipe);
  const ImageLayout layout = data.kind == "text" ? ImageLayout::kNone : find_image_layout(data.path);
  if (data.kind == "images" && layout == ImageLayout::kNone)
    throw UserError(fmt::format("{}: no images: neither class folders of JPEG or PNG, nor a .tar of them, nor IDX or CIFAR files; or set data.kind=\"text\"", data.path));
  return layout == ImageLayout::kNone ? open_text(recipe) : open_images(recipe, layout, cache);
}

}  // namespace huajin
