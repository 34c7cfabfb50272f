// A layout that huajin does not offer yet, as a test that core/execution.h and core/model.h allow it: two pipeline stages (1F1B) x data ranks with ZeRO-3.
// A weight is one leaf; its storage is filled by a gather before a block runs and emptied after, forward and backward; gradients are reduce-scattered after
// each block's backward. Techniques see owned slices and don't know.
#pragma once
#include <mpi.h>

#include <string>
#include <vector>

#include "huajin/core/block_execution.h"
#include "huajin/core/engine_forward.h"
#include "huajin/core/session.h"

namespace huajin {

// Where this rank stands: world rank = stage * data ranks + data rank.
struct Mesh {
  explicit Mesh(int stages);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  int stages, stage, data_rank, data_ranks;
  MPI_Comm data, column;  // ranks of the same stage; ranks of the same rows, by stage
};

// A session whose parameters are owned slices: sums over parameters count each logical element once.
class CutSession : public RunSession {
 public:
  using RunSession::RunSession;
  Tensor norm() override;
  Tensor norms(FunctionRef<Tensor(const Parameter&)> slice) override;
};

class PipelineZero3 : public Execution {
 public:
  // Cuts the session's parameters and slots; call between build() and the first step.
  PipelineZero3(RunSession& session, const Mesh& mesh);
  bool gradients(Step& step, Pass pass) override;
  Tensor score(const Batch& batch, const Progress& progress, bool training) override;
  Evaluated evaluate(const Examples& examples) override;
  Tensor logits(const Tensor& inputs, Cache* cache, int64_t position) override;
  void rebuilt() override;

  // The whole value of a parameter that this stage holds; undefined for others. Collective over the data axis.
  Tensor whole(const Parameter& p, const Tensor& slice);
  bool holds(const Parameter& p) const;
  int64_t most_filled_bytes() const { return most_filled_; }
  int64_t largest_block_bytes() const;  // of this stage
  int most_in_flight() const { return most_in_flight_; }

 private:
  struct Flight {
    Examples examples;
    EngineForward forward;
    std::vector<Flow> in, out;  // by block of this stage
    std::vector<std::vector<EngineForward::Added>> added;
    bool empty = false;
  };
  struct Totals {
    double weight = 0, items = 0;
  };

  bool last_stage() const { return mesh_.stage == mesh_.stages - 1; }
  void cut(Parameter& p, std::vector<Tensor*> slots);
  void fill(int block);
  void release(int block);
  void begin(Flight& flight, const Batch& micro, const Step& step, uint64_t noise);
  void run_forward(Flight& flight);
  void run_backward(Flight& flight);
  void backward_block(Flight& flight, int block, std::vector<Tensor> roots, std::vector<Tensor> seeds);
  Tensor objective(Flight& flight, int block);
  Loss chain(size_t technique, const Outputs& out, const Examples& in) const;
  void note(const std::string& name, const Tensor& value);
  void take_gradients(int block);
  void sum_ties();
  void send_flow(const Flow& flow, int to);
  Flow receive_flow(int from);

  RunSession& session_;
  const Mesh& mesh_;
  int begin_ = 0, end_ = 0;  // blocks of this stage
  std::vector<Tensor> leaves_;
  std::vector<std::vector<int>> weights_of_;
  std::map<std::string, double> terms_;
  Totals totals_;
  int64_t filled_ = 0, most_filled_ = 0;
  int in_flight_ = 0, most_in_flight_ = 0;
  std::vector<std::vector<char>> outgoing_;
  std::vector<MPI_Request> requests_;
};

}  // namespace huajin
