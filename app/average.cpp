// huajin average RUN RUN ... --out FOLDER [--greedy]: a model soup of finished runs (optim/averaging/soup), as a folder that --init-from takes.
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "app/commands.h"
#include "app/restored.h"
#include "app/setup.h"
#include "huajin/core/errors.h"
#include "huajin/io/checkpoint_folder.h"
#include "huajin/io/json.h"
#include "huajin/optim/averaging/soup/soup.h"

namespace huajin {
namespace {

constexpr int64_t kStatisticsBatches = 16;  // from which running statistics of a soup are estimated, as swa's default

struct Member {
  std::string given, folder;      // as typed; of the weights
  std::string checkpoint;         // "": a plain folder of weights
  NamedTensors tensors;
  std::optional<double> loss;     // of its own evaluation
};

Member find_member(const CommandLine& line, const std::string& given) {
  const bool plain = given.ends_with(".safetensors") || exists(given + "/model.safetensors") || exists(given + "/model.safetensors.index.json");
  if (plain) return {given, given, "", {}, {}};
  const std::string checkpoint = checkpoint_of(line, given);
  return {given, checkpoint + "/model", checkpoint, {}, {}};
}

NamedTensors tensors_of(const Safetensors& names, const Safetensors& weights, const std::string& where) {  // in the order of `names`
  NamedTensors tensors;
  for (const StoredTensor& stored : names.tensors()) tensors.emplace_back(stored.name, to_tensor(*weights.find(stored.name), where));
  return tensors;
}

NamedTensors tensors_of(RunSession& session) {
  NamedTensors tensors;
  for (const Parameter& p : session.table().parameters) tensors.emplace_back(p.name, p.value.detach().cpu().clone());
  return tensors;
}

// Loss an item, of the weights as they are: no technique stands in between.
double held_out_loss(Run& run) {
  const EvaluationSet& validation = *run.inputs().validation;
  Evaluated sum;
  for (int64_t i = 0; i < validation.batches(); ++i) {
    const Evaluated part = run.session().execution().evaluate(validation.batch(i));
    sum.sum += part.sum, sum.items += part.items;
  }
  return sum.items > 0 ? sum.sum / sum.items : std::numeric_limits<double>::quiet_NaN();
}

// Finished runs on the first one's validation split.
class Kitchen {
 public:
  Kitchen(const CommandLine& line, std::vector<Member>& members) : members_(members) {
    const std::string& first = members.front().checkpoint;
    Recipe recipe = Recipe::read(checkpoint_facts(OpenCheckpoint(first)).recipe, first + ": recipe");
    if (!line.data.empty()) recipe.data.validation = line.data;
    const RunInputs inputs = inputs_of(recipe, cache_folder(line));
    if (!inputs.validation) throw UserError(members.front().given + ": has no validation data; give --data FILE");
    batch_ = {recipe.batch.rows, recipe.batch.length, 1};
    for (Member& member : members) {
      run_ = restored_run(line, member.checkpoint, std::make_unique<RunInputs>(inputs));  // one at a time
      run_->trainer().with_evaluated_weights([&] {
        member.loss = held_out_loss(*run_);
        member.tensors = tensors_of(run_->session());
      });
    }
  }

  // The mean of these members, and what it loses. Statistics of several are estimated anew; of one they are its own.
  std::pair<NamedTensors, double> cook(const std::vector<size_t>& chosen) {
    if (chosen.size() == 1) return {members_[chosen[0]].tensors, *members_[chosen[0]].loss};
    std::vector<NamedTensors> tensors;
    std::vector<size_t> all;
    for (size_t i : chosen) all.push_back(tensors.size()), tensors.push_back(members_[i].tensors);
    const NamedTensors soup = uniform_soup(tensors, all);
    {
      at::NoGradGuard off;
      for (size_t i = 0; i < soup.size(); ++i) run_->session().table().parameters.at(i).value.copy_(soup[i].second);
    }
    std::pair<NamedTensors, double> result;
    run_->session().with_fresh_statistics(batch_, kStatisticsBatches, [&] { result = {tensors_of(run_->session()), held_out_loss(*run_)}; });
    return result;
  }

 private:
  std::vector<Member>& members_;
  std::unique_ptr<Run> run_;  // of the last member: its techniques are not asked any more
  Draw batch_;
};

void write_folder(const std::string& out, const NamedTensors& tensors, const std::string& model, const std::string& what) {
  const std::string part = fmt::format("{}.part-{}", out, getpid());
  make_folder(part);
  try {
    std::vector<TensorToStore> stored;
    for (auto& [name, tensor] : tensors) stored.push_back({name, stored_dtype(tensor.scalar_type()), tensor.sizes().vec(), tensor.const_data_ptr(), tensor.nbytes()});
    write_safetensors(part + "/model.safetensors", stored, {{"format", "pt"}, {"huajin.average", what}});
    if (is_folder(model))  // config.json, tokenizer
      for (auto& entry : std::filesystem::directory_iterator(model))
        if (const std::string name = entry.path().filename().string(); entry.is_regular_file() && name.find(".safetensors") == name.npos)
          write_atomically(part + "/" + name, read_file(entry.path().string()));
    sync_folder(part);
    rename_path(part, out);
  } catch (...) {
    remove_tree(part);
    throw;
  }
}

void print_result(const CommandLine& line, const std::vector<Member>& members, const std::vector<size_t>& chosen, std::optional<double> loss) {
  const auto in_soup = [&](size_t i) { return std::find(chosen.begin(), chosen.end(), i) != chosen.end(); };
  const auto number = [](std::optional<double> value) { return value && std::isfinite(*value) ? Json(*value) : Json(nullptr); };
  if (line.json) {
    Json out{{"out", line.output}, {"greedy", line.greedy}, {"val_loss", number(loss)}, {"members", Json::array()}};
    for (size_t i = 0; i < members.size(); ++i)
      out["members"].push_back({{"run", members[i].given}, {"weights", members[i].folder}, {"val_loss", number(members[i].loss)}, {"chosen", in_soup(i)}});
    fmt::print("{}\n", json_text(out));
    return;
  }
  for (size_t i = 0; i < members.size(); ++i)
    fmt::print("{}{}{}\n", members[i].given, members[i].loss ? fmt::format(": validation loss {:.4f}", *members[i].loss) : "", in_soup(i) ? "" : "; left out");
  fmt::print("average of {}{}\n{}: written; huajin train --init-from {} goes on from it\n", chosen.size(), loss ? fmt::format(": validation loss {:.4f}", *loss) : "", line.output,
             line.output);
}

}  // namespace

int average_command(const CommandLine& line) {
  if (exists(line.output)) throw UserError(line.output + ": is there already; give --out a new folder");
  std::vector<Member> members;
  for (auto& subject : line.subjects) members.push_back(find_member(line, subject));
  const Safetensors first(members.front().folder);
  for (const Member& member : members) require_same_tensors(first, members.front().folder, Safetensors(member.folder), member.folder);
  const auto plain = std::find_if(members.begin(), members.end(), [](const Member& m) { return m.checkpoint.empty(); });
  if (plain != members.end() && line.greedy)
    throw UserError(fmt::format("--greedy: {} is no run, so there is no data to choose on; name runs, or leave --greedy out", plain->given));

  std::vector<size_t> chosen;
  for (size_t i = 0; i < members.size(); ++i) chosen.push_back(i);
  NamedTensors soup;
  std::optional<double> loss;
  if (plain != members.end()) {
    std::vector<NamedTensors> tensors;
    for (const Member& member : members) {
      if (!member.checkpoint.empty()) OpenCheckpoint verified(member.checkpoint);
      tensors.push_back(tensors_of(first, Safetensors(member.folder), member.folder));
    }
    soup = uniform_soup(tensors, chosen);
  } else {
    Kitchen kitchen(line, members);
    if (line.greedy) {
      std::vector<double> losses;
      for (const Member& member : members) losses.push_back(*member.loss);
      chosen = greedy_soup(losses, [&](const std::vector<size_t>& some) { return kitchen.cook(some).second; }).chosen;
    }
    std::tie(soup, loss) = kitchen.cook(chosen);
  }
  std::string names;
  for (size_t i : chosen) names += (names.empty() ? "" : ", ") + members[i].given;
  write_folder(line.output, soup, members.front().folder, names);
  print_result(line, members, chosen, loss);
  return kExitOk;
}

}  // namespace huajin
