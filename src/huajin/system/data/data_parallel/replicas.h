// Do the ranks agree? Checked at start and every so many steps, since ranks that drift apart train something that nobody asked for.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "huajin/core/communicator.h"
#include "huajin/core/session.h"
#include "huajin/core/technique.h"

namespace huajin {

// Collective. Sums known numbers, compares the recipe's hash, measures 4 MB sums. One line for the log; UserError: another recipe on some rank;
// Error(kExitInternal): a wrong sum.
std::string self_test(Communicator& communicator, uint64_t recipe_hash);

// Collective. Error(kExitInternal) that names the first parameter whose value differs, the ranks and the step. Costs one reading of the weights.
void check_replicas(Communicator& communicator, std::span<Parameter* const> parameters, int64_t step);

// check_replicas() every so many updates; register it on every rank or on none.
class ReplicaWatch : public Observer {
 public:
  explicit ReplicaWatch(RunSession& session, int64_t every_steps = 100) : session_(session), every_(every_steps) {}
  void on_step(const Progress& progress, double seconds) override;

 private:
  RunSession& session_;
  int64_t every_;
};

}  // namespace huajin
