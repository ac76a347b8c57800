// Handles faults in mapped files. If a mapped file is truncated or its disk fails, reading its
// bytes raises SIGBUS. In a watched mapping the reading thread then gets zeros and continues; check
// has_faulted() after reading. Elsewhere the signal has its previous effect.
#pragma once

#include <cstddef>

namespace finetune {

struct WatchedMapping;

// Watches whole pages from `begin` on, until unwatch_mapping(), which must come before munmap().
WatchedMapping* watch_mapping(const void* begin, size_t size);
void unwatch_mapping(WatchedMapping* mapping);
bool has_faulted(const WatchedMapping& mapping);

}  // namespace finetune
