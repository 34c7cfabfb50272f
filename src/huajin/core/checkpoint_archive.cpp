#include "huajin/core/checkpoint_archive.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "huajin/core/errors.h"
#include "huajin/core/session.h"

namespace huajin {
namespace {

class ArchiveWriter : public Archive {
 public:
  ArchiveWriter(ArchivedState& state, Communicator& communicator) : state_(state), communicator_(communicator) {}
  void owner(std::string name) { prefix_ = std::move(name) + "/"; }
  void number(std::string_view name, double& value) override { put(state_.numbers, name, value); }
  void tensor(std::string_view name, Tensor& value) override { put(state_.tensors, name, value.defined() ? value.detach().cpu().clone() : Tensor()); }
  void rank_tensor(std::string_view name, Tensor& value) override {
    if (!value.defined()) throw Error(kExitInternal, fmt::format("{}{}: a rank tensor must be defined on every rank", prefix_, name));
    put(state_.by_rank, name, communicator_.gather(value.detach().contiguous().unsqueeze(0)).cpu().clone());
  }

 private:
  template <class Map, class Value>
  void put(Map& map, std::string_view name, Value value) {
    if (!map.emplace(prefix_ + std::string(name), std::move(value)).second)
      throw Error(kExitInternal, fmt::format("{}{}: serialize() names it twice", prefix_, name));
  }
  ArchivedState& state_;
  Communicator& communicator_;
  std::string prefix_;
};

class ArchiveReader : public Archive {
 public:
  ArchiveReader(const ArchivedState& state, RunSession& session, std::vector<std::string>& problems, std::vector<std::string>& notes)
      : state_(state), session_(session), problems_(problems), notes_(notes) {}
  void owner(std::string name) { prefix_ = std::move(name) + "/"; }
  void number(std::string_view name, double& value) override {
    if (const double* found = look(state_.numbers, name)) value = *found;
  }
  void tensor(std::string_view name, Tensor& value) override {
    // A clone: the technique writes into it, and what was read may be needed again.
    if (const Tensor* found = look(state_.tensors, name)) value = found->defined() ? found->clone().to(session_.device()) : Tensor();
  }
  void rank_tensor(std::string_view name, Tensor& value) override {
    const Tensor* found = look(state_.by_rank, name);
    if (!found) return;
    const auto& communicator = session_.communicator();
    if (found->size(0) == communicator.ranks())
      value = found->select(0, communicator.rank()).clone().to(session_.device());
    else
      notes_.push_back(fmt::format("{}{} was kept for {} ranks and starts afresh on {}", prefix_, name, found->size(0), communicator.ranks()));
  }
  void find_unasked() {
    for (const auto& [name, value] : state_.numbers) unasked(name);
    for (const auto& [name, value] : state_.tensors) unasked(name);
    for (const auto& [name, value] : state_.by_rank) unasked(name);
  }

 private:
  template <class Map>
  const typename Map::mapped_type* look(const Map& map, std::string_view name) {
    const std::string key = prefix_ + std::string(name);
    asked_.insert(key);
    const auto found = map.find(key);
    if (found == map.end()) problems_.push_back("missing " + key);
    return found == map.end() ? nullptr : &found->second;
  }
  void unasked(const std::string& name) {
    if (!asked_.count(name)) problems_.push_back("unexpected " + name);
  }
  const ArchivedState& state_;
  RunSession& session_;
  std::vector<std::string>&problems_, &notes_;
  std::set<std::string> asked_;
  std::string prefix_;
};

// Two entries of one name (a recipe may list a technique twice) get numbers.
template <class Visitor>
void visit_owners(RunSession& session, Visitor& visitor) {
  std::map<std::string, int> seen;
  for (const auto& technique : session.techniques()) {
    const std::string name(technique->name());
    const int before = seen[name]++;
    visitor.owner(before == 0 ? name : fmt::format("{}#{}", name, before + 1));
    technique->serialize(visitor);
  }
  visitor.owner("execution");
  session.execution().serialize(visitor);
}

}  // namespace

ArchivedState archive_of(RunSession& session) {
  ArchivedState state;
  ArchiveWriter writer(state, session.communicator());
  visit_owners(session, writer);
  return state;
}

void restore_archive(RunSession& session, const ArchivedState& state, std::vector<std::string>& problems, std::vector<std::string>& notes) {
  ArchiveReader reader(state, session, problems, notes);
  visit_owners(session, reader);
  reader.find_unasked();
}

Json exact_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}
double exact_number(const Json& value, const std::string& where) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return kInfinity;
  if (value == "-inf") return -kInfinity;
  throw DamagedError(fmt::format("{}: holds {}, a number is needed; use another checkpoint", where, json_text(value).substr(0, 50)));
}

}  // namespace huajin
