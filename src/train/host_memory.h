// Memory for all processes of this host, or this process's own where it is alone. Collective on the
// host; zeroed.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "ops/backend.h"

namespace finetune {

inline std::shared_ptr<void> allocate_for_host(Backend& backend, Communicator& comm, size_t bytes) {
  return comm.local_size() > 1 ? comm.allocate_shared(bytes) : backend.allocate(bytes);
}

}  // namespace finetune
