// All that a technique may see and change. It knows no technique and no layout; docs/hooks.md shows where in the loop each hook runs.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "huajin/core/function_ref.h"

namespace huajin {
using at::Tensor;
class Session;
class Model;

// ---- parameters -----------------------------------------------------------------------------------------------------
enum class Axis { kIsland, kPipeline, kData, kTensor };  // islands (DiLoCo) hold different values on purpose

struct Placement {
  int tensor_dim = -1;         // logical dimension cut over the tensor axis; -1: whole on each of its ranks
  bool cut_over_data = false;  // ZeRO: the rest, flattened, is cut over the data axis
  std::vector<int> stages;     // pipeline stages that hold it; several: a tie across stages
};

// This rank's view. `value` and `grad` are the owned slice in master precision and always have one shape. The gathered, cast
// and transformed copy that the model multiplies with belongs to the engine, which renews it before a pass if `value` changed.
struct Parameter {
  std::string name;            // logical, in Hugging Face's spelling
  std::vector<int64_t> shape;  // logical
  Placement placement;
  int index = -1;         // position in the session's table
  bool decay = true;      // weight decay applies; by default to matrices and larger, not to embeddings of positions, norms, biases
  bool trainable = true;  // false: statistics and frozen weights; the optimizer never sees them
  bool hidden_matrix = false;  // 2-D weight between hidden layers (not embedding, not head): Muon's domain
  Tensor value, grad;          // grad undefined: no gradient arrived; counts as zero
  double copies = 1;           // ranks that hold this very slice: in a sum over ranks it counts 1 / copies
};

enum class SlotKind { kValue, kGradient, kSecondMoment };  // how growth transforms it; kValue starts as a copy, others at zero

// ---- what a step is made of -------------------------------------------------------------------------------------------
struct Progress {
  int64_t step = 0;      // updates made: schedules, bias correction. Stays on a skip, goes back on a rollback
  int64_t draw = 0;      // batches drawn: keys random numbers. Never goes back
  int64_t examples = 0;  // rows drawn so far. Never goes back
  int64_t tokens = 0;    // position in the stream of tokens (rows x length so far; images: equal to examples). Never goes back
  double flops = 0;      // spent by forward and backward passes, by the model's own count
  double fraction = 0;   // of the budget, [0, 1]: rank 0's clock, agreed by all ranks once a step
};

struct Draw {  // asked of the sampler before loading; a pure function of Progress, so that loading can run ahead
  int64_t rows = 0, length = 0;
  int64_t candidates = 1;  // this many times more rows, for on_batch to choose from
};

// The index of the whole step's batch, the same on every rank. Tokens and pixels are loaded after the engine has cut it.
struct Batch {
  Tensor id;                              // [B] int64
  Tensor weight;                          // [B] or [B, T] factor on the share of the loss; undefined: ones
  Tensor partner, input_mix, target_mix;  // [B] x = m x(id) + (1-m) x(partner); partner is an id, not a row
  Tensor noise;                           // [B] int64 random stream of the row; undefined: id. Repeated rows must differ here
  double uniform_target = 0;              // mass of the target spread over all classes
  int64_t length = 0;                     // sequence length or resolution
  int64_t group = 1;                      // so many neighbouring rows never part (ranks and micro-batches)
  std::map<std::string, Tensor> extra;    // [B, ...] added by techniques, cut with the rows
  int64_t rows() const { return id.size(0); }
};

struct Examples {  // one micro-batch on one rank, loaded
  Batch index;
  Tensor inputs;           // tokens [b, T] int64, or images [b, C, H, W] in the activations' precision
  Tensor targets;          // [b, T] or [b] int64
  Tensor mask;             // [b, T] or [b]: 1 counts, 0 does not; known before the first forward pass. Undefined: ones
  Tensor partner_inputs, partner_targets;
};

// What the loss asks of the prediction. Logits may be cut over the tensor axis or made in chunks and never exist whole: ask for
// quantities. Each is [b, T] (or [b] for one prediction a row), differentiable, float32 or wider, and equal on all tensor ranks.
class Logits {
 public:
  virtual ~Logits() = default;
  virtual Tensor log_partition(double temperature = 1) const = 0;               // log sum_v exp(logit_v / t)
  virtual Tensor at(const Tensor& classes) const = 0;
  virtual Tensor mean() const = 0;
  virtual Tensor dot(const Logits& teacher, double temperature) const = 0;  // sum_v softmax(teacher / t)_v logit_v / t
  virtual Tensor whole() const = 0;                                         // [b, T, V]; needs kWholeLogits
  // log_partition() - at(classes), fused: one pass over the logits. The plain data term.
  virtual Tensor cross_entropy(const Tensor& classes) const = 0;
  virtual int64_t classes() const = 0;
};

struct Outputs {  // exists on the last pipeline stage only
  Tensor hidden;  // [b, T, D]: what the head read
  std::shared_ptr<Logits> logits;
  std::map<std::string, std::shared_ptr<Logits>> teachers;
  std::function<std::shared_ptr<Logits>(const Tensor& hidden)> head;
  std::function<Tensor(std::string_view parameter)> weight;  // working copy, differentiable
};

enum class Per { kWeight, kItem };  // divided by the step's sum of mask * weight, or by its number of items
struct Term {
  std::string name;
  Tensor items;  // [b, T] or [b], unweighted; or a scalar that adds over micro-batches
  Per per = Per::kWeight;
  double scale = 1;
};
struct Loss {
  std::vector<Term> terms;  // terms[0] is the data term; others only add
  Tensor& data() { return terms.at(0).items; }
};

struct Pass {
  bool probe = false;        // its gradient will not reach the optimizer: no error feedback, no scaler update
  bool fresh_noise = false;  // false: the step's random numbers again
};

struct Step {
  Session& session;
  Batch batch;
  Progress progress;
  Tensor loss, norm;     // on the device; of the first pass; norm before clipping
  Tensor example_loss;   // [B], data term a counted item, on every rank, first pass; needs kExampleLosses
  std::map<std::string, Tensor> records;  // what layers recorded in the first pass, combined over micro-batches and ranks
  std::map<std::string, double> terms;    // logged loss terms by name, first pass
  int passes = 0;
  bool skipped = false;
  std::string skip_reason = {};  // set by a technique whose gradients() returns false; empty: something was not finite
};

// ---- what a technique asks of the layout; a layout offers a set, and a recipe that needs more is refused before step 1 ---
using Needs = uint32_t;
enum Need : Needs {
  kNothing = 0,
  kWholeMatrices = 1,     // Session::whole(): ZeRO then cuts between tensors, not inside them
  kWholeLogits = 2,       // Logits::whole()
  kExampleLosses = 4,     // Session::score() or Step::example_loss
  kSeveralPasses = 8,     // calls next more than once in gradients()
  kAllGradients = 16,     // norms over all parameters before the first update: no optimizer-in-backward
  kLocalGradients = 32,   // installs a Reducer: gradients before the data axis is summed; not under ZeRO-3
  kChangesShapes = 64,    // rows or length differ between steps: no captured graph
  kChangesModel = 128,    // Session::rebuild()
  kMovesWeights = 256,    // writes values outside the optimizer: the engine watches their version
  kIslands = 512,         // the island axis
  kEvaluations = 1024,    // after_evaluation() between steps: evaluation.every in steps
};

// One verb a kind of state, for saving and loading alike; names are within the technique.
class Archive {
 public:
  virtual ~Archive() = default;
  virtual void number(std::string_view name, double& value) = 0;  // the same on all ranks
  virtual void tensor(std::string_view name, Tensor& value) = 0;  // the same on all ranks, no parameter's shape
  virtual void rank_tensor(std::string_view name, Tensor& value) = 0;  // differs by rank: bitwise in the same layout only
};

class Technique {
 public:
  virtual ~Technique() = default;
  virtual std::string_view name() const = 0;
  virtual Needs needs() const { return kNothing; }
  virtual void setup(Session&) {}  // declare: surgery, slots, teachers, transforms, optimizer, reducer; check that there is something to act on
  virtual void start(Session&) {}  // all is built and loaded: look, declare nothing
  virtual void on_draw(Draw&, const Progress&) const {}
  virtual void on_batch(Step&) {}
  virtual Loss loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const { return next(out, in); }
  virtual bool gradients(Step&, Pass pass, FunctionRef<bool(Pass)> next) { return next(pass); }  // false: not finite, give up
  virtual void on_gradients(Step&) {}
  virtual void update(Step&, FunctionRef<void()> next) { next(); }
  virtual void after_step(Step&) {}
  virtual void evaluate(Session&, FunctionRef<void()> next) { next(); }  // also around export and best-checkpoint
  virtual void after_evaluation(const Progress&, double loss) {}  // a complete one: validation loss, the same on every rank; before a checkpoint of the same step
  virtual void serialize(Archive&) {}
};

// ---- parts of which a run has one, handed over in setup() ---------------------------------------------------------------
class Schedule {  // a pure function of progress; setup() of a schedule technique hands it over
 public:
  virtual ~Schedule() = default;
  // Factor on the base rate, in [0, 1], for the update that `progress` is about to make. Resumes by construction.
  virtual double factor(const Progress& progress) const = 0;
  // UserError if a warm-up does not fit into so many updates (infinity: not known). Called once the budget is.
  virtual void check(double total_steps) const {}
};
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void begin(const Step&, double rate_factor) {}          // rate for this update; bias correction from progress.step (0-based)
  virtual void step(std::span<Parameter* const> parameters) = 0;  // all, a bucket, or one as its gradient arrives
  virtual double learning_rate() const = 0;                       // of the update just made: for the log
};
class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual Tensor reduce(const Parameter&, Tensor local, Pass) = 0;  // local gradient, ties summed -> sum over the data axis
};
using Transform = std::function<Tensor(const Parameter&, const Tensor& value)>;  // value -> working copy, differentiable

struct Rebuild {  // growth: the source of each new name, and what becomes of values and slots; logical tensors
  std::function<std::unique_ptr<Model>()> model;                             // the larger model
  std::function<std::string(std::string_view name)> source;                  // of a new name: the old name it starts from; "": fresh
  std::function<void(SlotKind, std::string_view name, Tensor&)> change;      // after copying; may be empty
  bool preserves_function = false;  // then checked on a probe batch, and undone if it does not
};

class Session {
 public:
  virtual ~Session() = default;
  // in setup()
  virtual Model& model() = 0;  // surgery happens before the table of parameters is made
  virtual std::unique_ptr<Model> fresh_model() = 0;  // the run's model built anew, before any surgery; null: this run cannot
  virtual void declare_slot(std::string_view owner, SlotKind) = 0;
  virtual void add_transform(Transform) = 0;
  virtual void add_teacher(std::string_view name, std::string_view slot) = 0;  // this model with the values of a slot
  // A model of its own that never learns and is saved nowhere; opened before step 1, errors begin with `key`. Outputs::teachers has it in training passes.
  virtual void add_teacher_folder(std::string_view name, const std::string& folder, std::string_view key) = 0;
  virtual void set_optimizer(std::unique_ptr<Optimizer>) = 0;  // a second one is an error; so for the others
  virtual void set_schedule(std::unique_ptr<Schedule>) = 0;
  virtual void set_reducer(std::unique_ptr<Reducer>) = 0;
  virtual uint64_t seed() const = 0;
  virtual at::Device device() const = 0;
  virtual bool classifies() const = 0;  // one label a row (images); false: a target a token
  // later. Everything below is collective: every rank calls it, in the same order
  virtual std::span<Parameter* const> parameters() = 0;  // trainable ones of this rank (local)
  virtual Tensor& slot(std::string_view owner, const Parameter&) = 0;  // local; allocated at first use
  virtual void each_slot(const Parameter&, FunctionRef<void(SlotKind, Tensor&)>) = 0;  // local; RigL resets, freezing drops
  virtual Tensor norms(FunctionRef<Tensor(const Parameter&)> slice) = 0;  // [parameters()] logical norms, one all-reduce, on the device
  virtual Tensor norm() = 0;                                              // of the gradients, each logical element once; cached a pass
  virtual void gradients_changed() = 0;                                   // by the caller, after the pass that made them: norm() is taken anew
  virtual Tensor amax(const Parameter&, const Tensor& working) = 0;       // over the logical tensor, from its working cut
  virtual Tensor whole(const Parameter&, const Tensor& slice) = 0;
  virtual Tensor cut(const Parameter&, const Tensor& whole) = 0;
  virtual Tensor score(const Batch&, bool training_mode) = 0;             // [B, T] or [B] data term, forward only
  // While next() runs, running statistics (Role::kStatistic) are those of the weights as they now are: means over so many batches from the beginning of
  // the training data. Then they are as they were. A model without any: next() alone.
  virtual void with_fresh_statistics(const Draw& batch, int64_t batches, FunctionRef<void()> next) { next(); }
  virtual Tensor all_reduce(Tensor, Axis) = 0;
  virtual void rebuild(const Rebuild&) = 0;
  virtual void roll_back(std::string_view why) = 0;  // newest verified checkpoint; draw and examples go on
};

// ---- observers: nothing here waits for the device ---------------------------------------------------------------------------
struct Reading {
  std::string name;
  double value;
};
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_step(const Progress&, double seconds) {}             // host facts, at once
  virtual void on_readings(int64_t step, std::span<const Reading>) {}  // device values, when their copies have arrived
  virtual void on_evaluation(const Progress&, double loss, double bits_per_byte, double accuracy) {}  // NaN where it has no meaning
  virtual void on_note(const std::string& text) {}  // something that a person should read
};

}  // namespace huajin
