// Shared memory between processes of one host, without a name in any file system. One process
// creates it, the others open its descriptor through /proc. Nothing is left behind when a process
// dies, and the size of /dev/shm does not limit it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/files/descriptor.h"

namespace finetune {

// Both throw Error(device): create_memory names the size, open_memory the process.
Descriptor create_memory(size_t bytes);
Descriptor open_memory(int pid, int descriptor);
// Returns zeroed, 64-byte aligned memory, in huge pages if possible. Pages are created when
// written.
std::shared_ptr<void> map_memory(const Descriptor& memory, size_t bytes);
// The same, private to this process.
std::shared_ptr<void> map_private_memory(size_t bytes);

}  // namespace finetune
