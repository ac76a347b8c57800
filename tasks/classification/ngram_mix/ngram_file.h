// ngrams.bin: a linear model on n-grams as a file beside a model's weights.
//
// Numbers are little-endian, without gaps: magic "ftngrams", version (u32), outputs (u32), number
// of texts, n-grams and weights (u64 each). Per output: bias (f32). Per n-gram: hash (u64,
// ascending), number of texts that have it (u32), number of its weights (u16). Per weight, ordered
// by n-gram: output (u16, ascending) and value (f16). Last the SHA-256 of all this as 64
// hexadecimal digits. Version 2 has columns beside the text, whose features count as n-grams. After
// the sizes it has the number of number columns and of category columns (u32 each), and per number
// column mean and deviation (f64 each; side_columns.h). Version 3 then has a byte per number
// column: 1 for decimal commas.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tasks/classification/ngrams/ngram_model.h"

namespace finetune {

inline constexpr std::string_view kNgramFile = "ngrams.bin";
inline constexpr size_t kMostNgramFileBytes = size_t{16} << 20;  // of a written file

// The bytes of the file: at most `most_bytes` without the biases. If it would be larger, leaves out
// the weights nearest to 0, and n-grams without weights. An infinite bias, of an output that no row
// or every row has, becomes finite.
std::string ngram_file_of(const NgramModel& model, size_t most_bytes = kMostNgramFileBytes);

struct StoredNgrams {
  NgramModel model;
  std::string sha256;  // stored in the file
};
// Error(model) naming `where` if the bytes are not such a file, or are damaged.
StoredNgrams read_ngram_file(std::string_view bytes, const std::string& where);

}  // namespace finetune
