// Limits of the copies that a backend hands to the host later (Backend::start_download).
// Known to the program and to the modules that keep them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace finetune {

constexpr size_t kMostQueuedBytes = 64;  // each
constexpr int64_t kMostQueued = 8;       // at a time

}  // namespace finetune
