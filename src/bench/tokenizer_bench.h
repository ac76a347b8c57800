// Measures a tokenizer's speed: ids and byte offsets, without special tokens.
#pragma once

#include <string>

#include "core/clock.h"
#include "core/text/json_value.h"

namespace finetune {

struct TokenizerBenchResult {
  std::string model, input;
  int64_t threads = 0;
  int64_t lines = 0;
  int64_t bytes = 0;  // in all lines, without line ends
  int64_t tokens = 0;
  int64_t passes = 0;
  double best_seconds = 0;  // the fastest pass over the file
  double median_seconds = 0;
};

// Each line of `input` is a text; reading the lines is not timed. `threads` 0: all cores.
// Error(data) if the file cannot be read or holds no text.
TokenizerBenchResult bench_tokenizer(const std::string& model, const std::string& input,
                                     int64_t threads, Clock clock);

JsonObject to_json(const TokenizerBenchResult& result);
std::string to_text(const TokenizerBenchResult& result);

}  // namespace finetune
