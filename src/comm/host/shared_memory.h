// Shared memory between processes of one host, without a name in any file system.
// One process makes it, the others open its descriptor through /proc. Nothing stays behind, however
// a process ends, and the size of /dev/shm is no limit.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/files/descriptor.h"

namespace finetune {

// Each: Error(device) that names the size, or the process whose memory cannot be opened.
Descriptor create_memory(size_t bytes);
Descriptor open_memory(int pid, int descriptor);
// Zeroed, 64-byte aligned; huge pages where the kernel gives them. Pages come when they are
// written.
std::shared_ptr<void> map_memory(const Descriptor& memory, size_t bytes);
// The same of this process alone.
std::shared_ptr<void> map_private_memory(size_t bytes);

}  // namespace finetune
