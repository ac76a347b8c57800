// How words are hidden from a model that learns to tell them (masked language modelling).
#pragma once

#include <cstdint>

namespace finetune {

// Plain, since processes share it. Which are hidden: masked_language/masking.h.
struct MaskingOptions {
  uint64_t seed = 42;
  double probability = 0.15;
  int64_t words = 0;     // ids that there are
  int32_t mask_id = -1;  // of [MASK]
  bool whole_words = true;
};

// What an id stands for.
enum class WordKind : uint8_t { begins, continues, special };

}  // namespace finetune
