// Limits of queued downloads (Backend::start_download). Shared by the program and the modules that
// implement them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace finetune {

constexpr size_t kMostQueuedBytes = 64;  // per download
constexpr int64_t kMostQueued = 8;       // pending at the same time

}  // namespace finetune
