// Allocates arenas that the processes of a host share.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "ops/backend.h"

namespace finetune {

// Returns zeroed memory that all processes of this host share. A process that is alone or computes
// on a device gets memory of its own. Collective on the host.
inline std::shared_ptr<void> allocate_for_host(Backend& backend, Communicator& comm, size_t bytes) {
  const bool shared = backend.uses_host_memory() && comm.local_size() > 1;
  return shared ? comm.allocate_shared(bytes) : backend.allocate(bytes);
}

// Whether each of several processes has its own arenas on a device. Data that they exchange is then
// staged in memory of the host.
inline bool staged_through_host(const Backend& backend, const Communicator& comm) {
  return !backend.uses_host_memory() && comm.size() > 1;
}

}  // namespace finetune
