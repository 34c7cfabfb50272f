// Collectives by MPI, for ranks on several machines: shares by all-to-all, reduced in rank order, gathered. Non-blocking calls that are tested until a
// deadline; then the ranks call the roll, so that the message names who is missing.
#pragma once
#include <mpi.h>

#include <memory>

#include "huajin/system/data/data_parallel/transport.h"

namespace huajin {

// `communicator`: one of its own, not shared with another thread or transport.
std::unique_ptr<Transport> mpi_transport(MPI_Comm communicator, double timeout_seconds);

}  // namespace huajin
