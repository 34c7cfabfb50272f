// The state of a run: weights, slots, techniques and parts, and what they may ask for. One a process.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "huajin/core/communicator.h"
#include "huajin/core/execution.h"
#include "huajin/core/loader.h"
#include "huajin/core/source.h"
#include "huajin/core/technique.h"

namespace huajin {

struct SessionOptions {
  uint64_t seed = 1;
  at::Device device = at::kCPU;
  at::ScalarType master = at::kFloat;   // kDouble with precision = fp64
  double loss_scale = 0;                // float16: constant; 0: dynamic
  at::ScalarType compute = at::kFloat;  // kFloat, kBFloat16, kHalf, kDouble
  int64_t micro_rows = 0;               // 0: all rows of a rank's share at once
  bool recompute = false;
  int64_t loader_workers = 1;
};

using Teacher = std::function<Tensor(const Tensor& inputs)>;  // logits, without a graph

struct Slot {
  std::string owner;
  SlotKind kind;
  std::vector<Tensor> tensors;  // by Parameter::index; undefined until first used
};

class RunSession : public Session {
 public:
  RunSession(std::unique_ptr<Model> model, std::shared_ptr<Source> source, std::vector<std::unique_ptr<Technique>> techniques,
             std::shared_ptr<Communicator> communicator, SessionOptions options);
  ~RunSession() override;

  // setup() of every technique, then weights are made (initialised by name from the seed; a given table of values wins), then start().
  void build();

  // ---- for techniques
  Model& model() override { return *table_.model; }
  std::unique_ptr<Model> fresh_model() override;
  void declare_slot(std::string_view owner, SlotKind) override;
  void add_transform(Transform) override;
  void add_teacher(std::string_view name, std::string_view slot) override;
  void add_teacher_folder(std::string_view name, const std::string& folder, std::string_view key) override;
  void set_optimizer(std::unique_ptr<Optimizer>) override;
  void set_schedule(std::unique_ptr<Schedule>) override;
  void set_reducer(std::unique_ptr<Reducer>) override;
  uint64_t seed() const override { return options_.seed; }
  at::Device device() const override { return options_.device; }
  bool classifies() const override { return source_->classifies(); }
  std::span<Parameter* const> parameters() override { return trainable_; }
  Tensor& slot(std::string_view owner, const Parameter&) override;
  void each_slot(const Parameter&, FunctionRef<void(SlotKind, Tensor&)>) override;
  Tensor norms(FunctionRef<Tensor(const Parameter&)> slice) override;
  Tensor norm() override;
  Tensor amax(const Parameter&, const Tensor& working) override;
  Tensor whole(const Parameter&, const Tensor& slice) override { return slice; }
  Tensor cut(const Parameter&, const Tensor& whole) override { return whole; }
  Tensor score(const Batch&, bool training_mode) override;
  void with_fresh_statistics(const Draw& batch, int64_t batches, FunctionRef<void()> next) override;
  Tensor all_reduce(Tensor, Axis) override;
  void rebuild(const Rebuild&) override;
  void roll_back(std::string_view why) override;

  // ---- for the engine and the trainer
  WeightTable& table() { return table_; }
  std::vector<Slot>& slots() { return slots_; }
  const std::vector<Transform>& transforms() const { return transforms_; }
  const std::vector<std::pair<std::string, std::string>>& teachers() const { return teachers_; }
  const std::vector<std::unique_ptr<Technique>>& techniques() const { return techniques_; }
  // Those of folders, once. UserError, DamagedError; what they predict must be as many classes as here.
  void open_teachers();
  const std::map<std::string, Teacher>& folder_teachers() const { return opened_; }
  Optimizer& optimizer() { return *optimizer_; }
  const Schedule& schedule() const { return *schedule_; }
  Reducer* reducer() { return reducer_.get(); }
  Communicator& communicator() { return *communicator_; }
  Source& source() { return *source_; }
  Loader& loader() { return *loader_; }
  Execution& execution() { return *execution_; }
  void set_execution(std::unique_ptr<Execution> e) { execution_ = std::move(e); }
  const SessionOptions& options() const { return options_; }
  Needs needs() const;  // of all techniques together
  bool built() const { return built_; }
  Progress& progress() { return progress_; }
  void gradients_changed() override { norm_ = Tensor(), norm_parts_.clear(); }  // the cached norms are stale
  void take_norm(const Parameter& p);  // of a gradient that is complete, while it is still in the processor's cache
  std::function<void(std::string_view)> on_roll_back;  // set by the trainer
  std::function<std::unique_ptr<Model>()> model_maker;  // for techniques that grow the model; set before build()
  std::function<Teacher(const std::string& folder, const std::string& key)> teacher_opener;   // for techniques that learn from another model; set before step 1
  // The run's model at another width; heads: attention heads at that width, 0: as many. For techniques that scale with the width; set before build()
  std::function<std::unique_ptr<Model>(int64_t width, int64_t heads)> model_of_width;

 private:
  void make_parameters();

  SessionOptions options_;
  std::shared_ptr<Source> source_;
  std::shared_ptr<Communicator> communicator_;
  std::vector<std::unique_ptr<Technique>> techniques_;
  WeightTable table_;
  std::vector<Parameter*> trainable_;
  std::vector<Slot> slots_;
  std::vector<Transform> transforms_;
  std::vector<std::pair<std::string, std::string>> teachers_;
  struct TeacherFolder {
    std::string name, folder, key;
  };
  std::vector<TeacherFolder> teacher_folders_;
  std::map<std::string, Teacher> opened_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<Reducer> reducer_;
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<Execution> execution_;
  Progress progress_;
  Tensor norm_;
  std::vector<Tensor> norm_parts_;  // by parameter; undefined: not taken yet
  bool built_ = false;
};

// The value of a weight that nothing was loaded for: a pure function of (seed, name, shape, initialisation).
Tensor initial_value(const Weight& weight, std::string_view name, uint64_t seed, at::ScalarType dtype, at::Device device);

}  // namespace huajin
