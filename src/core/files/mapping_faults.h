// Faults in mapped files. A file that is cut while it is mapped, or whose disk fails, raises SIGBUS
// where its bytes are read. In a watched mapping the thread then reads zeros and goes on, and
// whoever has read asks has_faulted(). Elsewhere the signal does what it did before.
#pragma once

#include <cstddef>

namespace finetune {

struct WatchedMapping;

// Whole pages from `begin` on, until unwatch_mapping(), which comes before munmap().
WatchedMapping* watch_mapping(const void* begin, size_t size);
void unwatch_mapping(WatchedMapping* mapping);
bool has_faulted(const WatchedMapping& mapping);

}  // namespace finetune
