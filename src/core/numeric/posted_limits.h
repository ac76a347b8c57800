// Of copies that a backend is to hand to the host later (Backend::post): known to the program and
// to the modules that keep them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace finetune {

constexpr size_t kMostPostedBytes = 64;  // each
constexpr int64_t kMostPosted = 8;       // at a time

}  // namespace finetune
