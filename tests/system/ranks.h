// What the tests of this folder share: one program on several ranks, started by mpirun (CMakeLists.txt). Each test runs on all ranks.
#pragma once
#include "huajin/system/data/data_parallel/rank_communicator.h"

namespace huajin {

// Of the whole program; several ranks.
std::shared_ptr<RankCommunicator> ranks();

// The greatest over all ranks: a test compares it, so that every rank fails together.
double greatest(double value);

}  // namespace huajin
