// Executes a step block by block with a detach between (docs/design/execution.md): accumulation over micro-batches, recomputation,
// mixed precision by working copies, and data parallelism with each block's gradients handed to the communicator as they arrive.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "huajin/core/engine_forward.h"
#include "huajin/core/execution.h"
#include "huajin/core/loss_scaler.h"

namespace huajin {
class RunSession;

// Rows of `batch` that go to `rank`, in micro-batches of at most `micro_rows` rows (0: one); groups stay whole. Pure.
std::vector<Batch> cut_batch(const Batch& batch, int rank, int ranks, int64_t micro_rows);

class BlockExecution : public Execution, private GradientSink {
 public:
  explicit BlockExecution(RunSession& session);
  ~BlockExecution() override;

  bool gradients(Step& step, Pass pass) override;
  void settle(Step& step) override;
  Tensor score(const Batch& batch, const Progress& progress, bool training) override;
  void estimate_statistics(std::span<const Batch> batches, const Progress& progress) override;
  Evaluated evaluate(const Examples& examples) override;
  Tensor logits(const Tensor& inputs, Cache* cache, int64_t position) override;
  void rebuilt() override;
  void serialize(Archive& archive) override { scaler_.serialize(archive); }
  LossScaler& scaler() { return scaler_; }

 private:
  struct Flight {  // one micro-batch on its way
    Examples examples;
    EngineForward forward;
    std::vector<Flow> in, out;  // of each block but the head
    std::vector<std::vector<EngineForward::Added>> added;  // auxiliary terms of each block
    Tensor hidden;              // what the head reads, a leaf
  };
  struct Totals {
    double weight = 0, items = 0;  // of the whole step, over all ranks
  };
  struct Sums {  // of the first pass, over micro-batches
    std::map<std::string, Tensor> terms;
    Tensor example_loss;
  };

  void publish();
  void begin(Flight& flight, Examples examples, const Progress& progress, uint64_t noise, bool training);
  void run_forward(Flight& flight, bool keep);
  void each_statistic(std::vector<EngineForward::Recorded> recorded, FunctionRef<void(size_t id, const Tensor& mean)> see);
  void begin_score(Flight& flight, const Batch& micro, const Progress& progress, bool training);
  Outputs outputs_of(Flight& flight);
  Loss chain(size_t technique, const Outputs& out, const Examples& in) const;
  Tensor objective(Flight& flight, const Outputs& out, const Totals& totals, Sums& sums);
  void run_backward(Flight& flight, const Tensor& total, const Totals& totals, Sums& sums, bool last);
  void backward_block(Flight& flight, int block, Flow& upstream, const Totals& totals, Sums& sums);
  Tensor auxiliary(const EngineForward::Added& added, const Totals& totals, Sums& sums);
  void take_gradients(int block, bool last);
  void accumulate(int id, Tensor grad);
  void add_rows(int id, const Tensor& ids, const Tensor& grads) override;
  void release_block(int block);  // its finished gradients go to the communicator
  void transforms_backward();
  bool finish(Step& step, Pass pass, Sums& sums);
  void reduce_late(Pass pass);
  bool read_first_pass(Step& step, Sums& sums);
  std::map<std::string, std::shared_ptr<Logits>> run_teachers(const Examples& examples);

  RunSession& session_;
  std::vector<Tensor> working_;           // [entries] what layers multiply with; leaves
  std::vector<Tensor> source_, product_;  // with transforms: leaf over the value, and the transform's result
  std::vector<int64_t> version_;          // of the value that working_ was made from
  std::vector<std::vector<int>> block_weights_, finished_in_;  // by block: entries it uses; entries whose gradient is complete after its backward
  std::vector<EngineForward::Recorded> recorded_;  // in the step's first pass, not yet in effect
  LossScaler scaler_;
};

// The plain data term: cross-entropy against targets, the partner's share and the uniform mass of the index.
Loss base_loss(const Outputs& out, const Examples& in);

}  // namespace huajin
