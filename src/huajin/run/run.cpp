#include "huajin/run/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "huajin/core/checkpoint.h"
#include "huajin/core/errors.h"
#include "huajin/core/process.h"
#include "huajin/core/product_speed.h"
#include "huajin/core/registry.h"
#include "huajin/core/rng.h"
#include "huajin/io/tokenizer.h"
#include "huajin/run/model.h"
#include "huajin/run/teacher.h"
#include "huajin/system/data/data_parallel/replicas.h"

namespace huajin {
namespace {

at::Device choose_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  const std::string no_cuda = load_cuda();
  if (name == "cuda" && !no_cuda.empty()) throw UserError("--device cuda: " + no_cuda + "; or use --device cpu");
  if (name != "auto" && name != "cuda") throw UserError(fmt::format("--device {}: must be auto, cpu or cuda", name));
  return no_cuda.empty() ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

// Steps between, or seconds between; 0 and 0: only early and at the end.
void read_cadence(const std::string& every, const char* key, double& steps, double* seconds) {
  if (every == "auto" || every == "never") return;
  const Limits limits = parse_limits(every, key);
  if (limits.steps < Limits::kNone) steps = limits.steps;
  else if (seconds != nullptr && limits.seconds < Limits::kNone) *seconds = limits.seconds;
  else throw UserError(fmt::format("{}=\"{}\": give auto, never{} or a number of steps such as 100step", key, every, seconds ? ", seconds such as 60s" : ""));
}

TrainerOptions trainer_options(const Recipe& recipe) {
  TrainerOptions options;
  options.limits = parse_limits(recipe.budget.limit, "budget.limit");
  options.rows = recipe.batch.rows;
  options.length = recipe.batch.length;
  options.on_non_finite = recipe.run.on_non_finite;
  options.most_skips = recipe.run.most_skips;
  read_cadence(recipe.evaluation.every, "evaluation.every", options.evaluate_every_steps, nullptr);
  read_cadence(recipe.checkpoint.every, "checkpoint.every", options.checkpoint_every_steps, &options.checkpoint_every_seconds);
  if (recipe.checkpoint.every == "auto")
    options.checkpoint_every_seconds = options.limits.seconds < Limits::kNone ? std::clamp(options.limits.seconds / 10, 30.0, 600.0) : 60;
  return options;
}

void check_layout(const Recipe& recipe, int ranks) {
  if (recipe.layout.data != 0 && recipe.layout.data != ranks)
    throw UserError(fmt::format("layout.data={}: {} process(es) were started; use `mpirun -n {} ./huajin ...` or layout.data={}", recipe.layout.data, ranks, recipe.layout.data, ranks));
  if (recipe.batch.rows % ranks != 0)
    throw UserError(fmt::format("batch.rows={}: must be a multiple of the {} ranks; take {}", recipe.batch.rows, ranks, (recipe.batch.rows / ranks + 1) * ranks));
}

double weights_in(const Layer& layer) {
  double count = 0;
  for (auto& weight : layer.weights) {
    double numbers = 1;
    for (const int64_t n : weight->shape) numbers *= static_cast<double>(n);
    count += numbers;
  }
  for (auto& part : layer.parts) count += weights_in(*part->layer);
  return count;
}

// Said before the memory is asked for: Linux grants more than there is and ends the process later.
void check_weights_fit(const Model& model, const SessionOptions& options, const Recipe& recipe) {
  if (!options.device.is_cpu()) return;
  double count = 0;
  for (auto& block : model.blocks) count += weights_in(*block.layer);
  const double need = 2 * count * static_cast<double>(c10::elementSize(options.master));
  const double have = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (need > have)
    throw UserError(fmt::format("model.name=\"{}\": {:.3g} weights and their gradients take {:.1f} GB, this machine has {:.1f} GB; make the model smaller (model.width, model.layers)",
                                recipe.model.name, count, need / 1e9, have / 1e9));
}

}  // namespace

at::ScalarType choose_compute(const std::string& precision, at::Device device) {
  if (precision == "fp32") return at::kFloat;
  if (precision == "fp64") return at::kDouble;
  if (precision == "bf16") return at::kBFloat16;
  if (precision == "fp16") return at::kHalf;
  if (precision != "auto") throw UserError(fmt::format("precision=\"{}\": must be fp32, fp64, bf16, fp16 or auto", precision));
  return product_flops(at::kBFloat16, device) > 1.5 * product_flops(at::kFloat, device) ? at::kBFloat16 : at::kFloat;
}

Run::Run(Recipe recipe, RunInputs inputs, RunPlace place) : recipe_(std::move(recipe)), inputs_(std::move(inputs)) {
  const std::shared_ptr<Communicator> communicator = place.communicator ? place.communicator : std::shared_ptr<Communicator>(single_process());
  check_layout(recipe_, communicator->ranks());
  const TrainerOptions options = trainer_options(recipe_);
  SessionOptions session;
  session.seed = static_cast<uint64_t>(recipe_.run.seed);
  session.device = choose_device(place.device);
  std::string precision = recipe_.run.precision;  // what rank 0 measures holds for all
  if (precision == "auto" && communicator->rank() == 0) precision = choose_compute(precision, session.device) == at::kBFloat16 ? "bf16" : "fp32";
  communicator->broadcast(precision, 0);
  session.compute = choose_compute(precision, session.device);
  session.master = session.compute == at::kDouble ? at::kDouble : at::kFloat;
  recipe_.run.precision = session.compute == at::kDouble ? "fp64" : session.compute == at::kBFloat16 ? "bf16" : session.compute == at::kHalf ? "fp16" : "fp32";
  session.loss_scale = recipe_.run.loss_scale;
  int exponent = 0;
  if (session.loss_scale > 0 && std::frexp(session.loss_scale, &exponent) != 0.5)
    throw UserError(fmt::format("loss_scale={}: must be a power of two, so that scaling rounds nothing, such as {}; or 0: found while training", session.loss_scale, std::ldexp(1.0, exponent)));
  if (session.loss_scale > 0 && session.compute != at::kHalf)
    throw UserError(fmt::format("loss_scale={}: only precision=\"fp16\" scales the loss, this run has {}; leave loss_scale out", session.loss_scale, recipe_.run.precision));
  session.micro_rows = recipe_.execution.micro_rows;
  session.recompute = recipe_.execution.recompute;
  session.loader_workers = recipe_.data.workers;
  auto techniques = make_techniques(catalog(), recipe_);
  auto model = make_model(recipe_, inputs_, place.init_from);
  check_weights_fit(*model, session, recipe_);
  session_ = std::make_unique<RunSession>(std::move(model), inputs_.train, std::move(techniques), communicator, session);
  session_->model_maker = [this, from = place.init_from] { return make_model(recipe_, inputs_, from); };
  session_->teacher_opener = [this, place](const std::string& folder, const std::string& key) { return open_teacher(folder, key, recipe_, inputs_, place); };
  session_->model_of_width = [this, from = place.init_from](int64_t width, int64_t heads) {
    if (!from.empty()) throw UserError(fmt::format("--init-from {}: its weights were not made for another width; drop mup", from));
    Recipe other = recipe_;
    set_model_width(other, width, heads);
    return make_model(other, inputs_, "");
  };
  session_->build();
  session_->schedule().check(options.limits.steps);
  for (auto& technique : session_->techniques())
    if ((technique->needs() & kEvaluations) && (options.evaluate_every_steps == 0 || !inputs_.validation))
      throw UserError(fmt::format("evaluation.every=\"{}\": {} depends on evaluations between steps; set a number of them, for instance evaluation.every=\"100step\"",
                                  recipe_.evaluation.every, technique->name()));
  if (!place.init_from.empty()) load_model_folder(*session_, place.init_from);
  if (!place.checkpoints.empty() && recipe_.checkpoint.every != "never") {
    KeeperOptions keeper;
    keeper.checkpoints = place.checkpoints;
    keeper.keep = recipe_.checkpoint.keep;
    keeper.recipe = recipe_.resolved();
    if (inputs_.tokenizer)
      for (auto& [name, content] : inputs_.tokenizer->files()) keeper.model_files[name] = content;
    auto made = std::make_unique<CheckpointKeeper>(std::move(keeper));
    made->require_room(*session_);
    keeper_ = std::move(made);
  }
  trainer_ = std::make_unique<Trainer>(*session_, options, recipe_.evaluation.every == "never" ? nullptr : inputs_.validation.get(), keeper_.get());
  if (communicator->ranks() > 1) {
    const uint64_t state = mix(hash_name(recipe_.resolved()), static_cast<uint64_t>(inputs_.train_units), static_cast<uint64_t>(inputs_.validation_units));
    inputs_.summary += "; " + self_test(*communicator, state);
    replicas_ = std::make_unique<ReplicaWatch>(*session_);
    trainer_->observe(replicas_.get());
  }
}

Run::~Run() = default;

double Run::parameters() const {
  double count = 0;
  for (Parameter* p : session_->parameters()) count += static_cast<double>(p->value.numel());
  return count;
}

}  // namespace huajin
