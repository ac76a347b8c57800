// Where arenas lie that several processes work on.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "ops/backend.h"

namespace finetune {

// Memory for all processes of this host, or this process's own where it is alone or computes on a
// device. Collective on the host; zeroed.
inline std::shared_ptr<void> allocate_for_host(Backend& backend, Communicator& comm, size_t bytes) {
  const bool shared = backend.uses_host_memory() && comm.local_size() > 1;
  return shared ? comm.allocate_shared(bytes) : backend.allocate(bytes);
}

// Each process has arenas of its own, on a device: what goes between them is staged in memory of
// the host.
inline bool staged_through_host(const Backend& backend, const Communicator& comm) {
  return !backend.uses_host_memory() && comm.size() > 1;
}

}  // namespace finetune
