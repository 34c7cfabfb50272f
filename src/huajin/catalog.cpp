// The one list of every technique: what a recipe may name.
#include "huajin/core/registry.h"
#include "huajin/data/regularization/mixup/mixup.h"
#include "huajin/data/sampling/importance_sampling/importance_sampling.h"
#include "huajin/model/curriculum/stacking/stacking.h"
#include "huajin/model/initialization/initializer/initializer.h"
#include "huajin/model/initialization/mup/mup.h"
#include "huajin/model/initialization/shrink_and_perturb/shrink_and_perturb.h"
#include "huajin/optim/averaging/ema/ema.h"
#include "huajin/optim/averaging/lawa/lawa.h"
#include "huajin/optim/averaging/lookahead/lookahead.h"
#include "huajin/optim/averaging/swa/swa.h"
#include "huajin/optim/averaging/twa/twa.h"
#include "huajin/optim/large_batch/clip/clip.h"
#include "huajin/optim/large_batch/lamb/lamb.h"
#include "huajin/optim/large_batch/lars/lars.h"
#include "huajin/optim/learning_rate/adabelief/adabelief.h"
#include "huajin/optim/learning_rate/adafactor/adafactor.h"
#include "huajin/optim/learning_rate/adagrad/adagrad.h"
#include "huajin/optim/learning_rate/adam/adam.h"
#include "huajin/optim/learning_rate/adamw/adamw.h"
#include "huajin/optim/learning_rate/adan/adan.h"
#include "huajin/optim/learning_rate/constant/constant.h"
#include "huajin/optim/learning_rate/cosine/cosine.h"
#include "huajin/optim/learning_rate/cosine_restarts/cosine_restarts.h"
#include "huajin/optim/learning_rate/cyclic/cyclic.h"
#include "huajin/optim/learning_rate/exponential/exponential.h"
#include "huajin/optim/learning_rate/layer_decay/layer_decay.h"
#include "huajin/optim/learning_rate/linear/linear.h"
#include "huajin/optim/learning_rate/lion/lion.h"
#include "huajin/optim/learning_rate/muon/muon.h"
#include "huajin/optim/learning_rate/nadamw/nadamw.h"
#include "huajin/optim/learning_rate/one_cycle/one_cycle.h"
#include "huajin/optim/learning_rate/plateau/plateau.h"
#include "huajin/optim/learning_rate/polynomial/polynomial.h"
#include "huajin/optim/learning_rate/radam/radam.h"
#include "huajin/optim/learning_rate/rex/rex.h"
#include "huajin/optim/learning_rate/rmsprop/rmsprop.h"
#include "huajin/optim/learning_rate/schedule_free/schedule_free.h"
#include "huajin/optim/learning_rate/sgd/sgd.h"
#include "huajin/optim/learning_rate/sophia/sophia.h"
#include "huajin/optim/learning_rate/step/step.h"
#include "huajin/optim/learning_rate/wsd/wsd.h"
#include "huajin/optim/objective/asam/asam.h"
#include "huajin/optim/objective/distillation/distillation.h"
#include "huajin/optim/objective/esam/esam.h"
#include "huajin/optim/objective/gradient_norm_penalty/gradient_norm_penalty.h"
#include "huajin/optim/objective/gsam/gsam.h"
#include "huajin/optim/objective/label_smoothing/label_smoothing.h"
#include "huajin/optim/objective/looksam/looksam.h"
#include "huajin/optim/objective/multi_token/multi_token.h"
#include "huajin/optim/objective/sam/sam.h"
#include "huajin/optim/objective/soft_cap/soft_cap.h"
#include "huajin/optim/objective/z_loss/z_loss.h"
#include "huajin/system/optimization/spike/spike.h"
#include "huajin/system/optimization/stochastic_rounding/stochastic_rounding.h"

namespace huajin {
namespace {

void add_data(Registry& r) {
  r.add<ImportanceSampling, ImportanceSamplingConfig>("importance_sampling", "data/sampling",
                                                      "rows drawn by a bound of their gradient, weighed so that nothing is biased");
  // Rows are chosen before they are paired: else partners would be drawn for candidates that nobody trains on.
  r.add<Mixup, MixupConfig>("mixup", "data/regularization", "convex combinations of two images and of their labels").after = {"importance_sampling"};
}

void add_model(Registry& r) {
  r.add<Stacking, StackingConfig>("stacking", "model/curriculum", "a shallow model whose layers are doubled while it trains");
  r.add<Initializer, InitializerConfig>("initializer", "model/initialization", "initial weights of hidden layers by a law: Xavier, Kaiming, orthogonal");
  r.add<ShrinkAndPerturb, ShrinkAndPerturbConfig>("shrink_and_perturb", "model/initialization", "weights of an earlier run are shrunk and get noise before they are trained on");
  // Its factors are relative to the initial weights that the model declares.
  r.add<Mup, MupConfig>("mup", "model/initialization", "initial weights and rates by width: the best rate of a narrow model is that of a wide one").conflicts = {"initializer"};
}

// Each takes the gradient somewhere else: one inside another would climb from where the other climbed to.
void add_sharpness_aware(Registry& r) {
  const char* box = "optim/objective";
  const std::vector<std::string> names{"sam", "asam", "gsam", "esam", "looksam", "gradient_norm_penalty"};
  const auto alone = [&](TechniqueEntry& entry) {
    for (auto& name : names)
      if (name != entry.name) entry.conflicts.push_back(name);
  };
  alone(r.add<Sam, SamConfig>("sam", box, "gradient at the worst point nearby"));
  alone(r.add<Asam, AsamConfig>("asam", box, "SAM with a neighbourhood that scales with each weight"));
  alone(r.add<Gsam, GsamConfig>("gsam", box, "SAM that also narrows the gap between the loss and the worst nearby"));
  alone(r.add<Esam, EsamConfig>("esam", box, "SAM with a share of the weights and of the rows"));
  alone(r.add<Looksam, LooksamConfig>("looksam", box, "SAM every few steps, its direction reused between"));
  alone(r.add<GradientNormPenalty, GradientNormPenaltyConfig>("gradient_norm_penalty", box, "penalty on the norm of the gradient"));
}

void add_optim(Registry& r) {
  const char* rate = "optim/learning_rate";
  r.add<Adamw, AdamwConfig>("adamw", rate, "Adam with decoupled weight decay", PartOfRun::kOptimizer);
  r.add<Nadamw, NadamwConfig>("nadamw", rate, "AdamW with Nesterov's look ahead", PartOfRun::kOptimizer);
  r.add<Radam, RadamConfig>("radam", rate, "Adam that takes in its second moment as that becomes reliable", PartOfRun::kOptimizer);
  r.add<Adan, AdanConfig>("adan", rate, "means of the gradient, of its change and of their square", PartOfRun::kOptimizer);
  r.add<Adam, AdamConfig>("adam", rate, "mean gradient over the root of the mean square; AMSGrad", PartOfRun::kOptimizer);
  r.add<Adabelief, AdabeliefConfig>("adabelief", rate, "Adam that divides by the gradient's distance from its mean", PartOfRun::kOptimizer);
  r.add<ScheduleFree, ScheduleFreeConfig>("schedule_free", rate, "AdamW at a point near the average of its path: no end needs to be known", PartOfRun::kOptimizer);
  r.add<Adafactor, AdafactorConfig>("adafactor", rate, "second moments kept as row and column means", PartOfRun::kOptimizer);
  r.add<Adagrad, AdagradConfig>("adagrad", rate, "gradient over the root of the sum of squares", PartOfRun::kOptimizer);
  r.add<Rmsprop, RmspropConfig>("rmsprop", rate, "gradient over the root of its mean square", PartOfRun::kOptimizer);
  r.add<Sophia, SophiaConfig>("sophia", rate, "momentum over an estimate of the Hessian's diagonal, clipped", PartOfRun::kOptimizer);
  r.add<Sgd, SgdConfig>("sgd", rate, "gradient descent with momentum", PartOfRun::kOptimizer);
  r.add<Lion, LionConfig>("lion", rate, "sign of the momentum: each weight moves by the rate", PartOfRun::kOptimizer);
  r.add<Muon, MuonConfig>("muon", rate, "orthogonalised momentum for hidden matrices, AdamW for the rest", PartOfRun::kOptimizer);
  r.add<ConstantSchedule, ConstantScheduleConfig>("constant", rate, "constant rate after warm-up", PartOfRun::kSchedule);
  r.add<LinearSchedule, LinearScheduleConfig>("linear", rate, "linear decay over the whole budget", PartOfRun::kSchedule);
  r.add<CosineSchedule, CosineScheduleConfig>("cosine", rate, "half a cosine over the whole budget", PartOfRun::kSchedule);
  r.add<WsdSchedule, WsdScheduleConfig>("wsd", rate, "constant, then a short cool-down", PartOfRun::kSchedule);
  r.add<Lars, LarsConfig>("lars", "optim/large_batch", "momentum, each matrix's step sized by its norm", PartOfRun::kOptimizer);
  r.add<Lamb, LambConfig>("lamb", "optim/large_batch", "Adam, each matrix's step sized by its norm", PartOfRun::kOptimizer);
  r.add<RexSchedule, RexScheduleConfig>("rex", rate, "falls slowly at first and fast at last", PartOfRun::kSchedule);
  r.add<StepSchedule, StepScheduleConfig>("step", rate, "drops at milestones", PartOfRun::kSchedule);
  r.add<ExponentialSchedule, ExponentialScheduleConfig>("exponential", rate, "the same ratio from update to update", PartOfRun::kSchedule);
  r.add<PolynomialSchedule, PolynomialScheduleConfig>("polynomial", rate, "a power of what is left of the budget", PartOfRun::kSchedule);
  r.add<CosineRestartsSchedule, CosineRestartsScheduleConfig>("cosine_restarts", rate, "half cosines, each longer than the one before", PartOfRun::kSchedule);
  r.add<OneCycleSchedule, OneCycleScheduleConfig>("one_cycle", rate, "a long rise to a high peak and a longer fall", PartOfRun::kSchedule);
  r.add<CyclicSchedule, CyclicScheduleConfig>("cyclic", rate, "up and down several times", PartOfRun::kSchedule);
  r.add<PlateauSchedule, PlateauScheduleConfig>("plateau", rate, "falls when evaluations stop improving", PartOfRun::kSchedule);
  r.add<LayerDecay, LayerDecayConfig>("layer_decay", rate, "smaller rates for blocks further from the head");
  r.add<Clip, ClipConfig>("clip", "optim/large_batch", "bound on the gradient's global norm or elements");
  r.add<LabelSmoothing, LabelSmoothingConfig>("label_smoothing", "optim/objective", "part of the target spread over all classes");
  r.add<ZLoss, ZLossConfig>("z_loss", "optim/objective", "keeps the softmax's denominator near one");
  // Growth builds the model anew, without the cap and without further heads.
  r.add<SoftCap, SoftCapConfig>("soft_cap", "optim/objective", "logits bounded by a tangent").conflicts = {"stacking"};
  r.add<MultiToken, MultiTokenConfig>("multi_token", "optim/objective", "further heads that predict the tokens after the next").conflicts = {"stacking"};
  r.add<Distillation, DistillationConfig>("distillation", "optim/objective", "learns from another model's probabilities, or from its own average");
  add_sharpness_aware(r);
  r.add<Ema, EmaConfig>("ema", "optim/averaging", "moving average of the weights for evaluation");
  r.add<Swa, SwaConfig>("swa", "optim/averaging", "equal average of the weights over the last part of the run");
  r.add<Lawa, LawaConfig>("lawa", "optim/averaging", "mean of the last snapshots of the weights");
  r.add<Twa, TwaConfig>("twa", "optim/averaging", "snapshots, and at the end only the coefficients of their sum are trained");
  r.add<Lookahead, LookaheadConfig>("lookahead", "optim/averaging", "slow weights that follow the fast ones every k updates");
}

void add_system(Registry& r) {
  r.add<Spike, SpikeConfig>("spike", "system/optimization", "skips steps whose loss is far above the latest, or goes back");
  r.add<StochasticRounding, StochasticRoundingConfig>("stochastic_rounding", "system/optimization", "bfloat16 weights that are right on average");
}

}  // namespace

const Registry& catalog() {
  static const Registry registry = [] {
    Registry r;
    add_data(r);
    add_model(r);
    add_optim(r);
    add_system(r);
    return r;
  }();
  return registry;
}

}  // namespace huajin
