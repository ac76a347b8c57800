// ngrams.bin: a linear model on n-grams as a file beside a model's weights.
//
// Numbers are little-endian, without gaps: magic "ftngrams", version (u32), outputs (u32), texts
// that n-grams were counted in, n-grams, weights (u64 each); of each output its bias (f32); of each
// n-gram its hash (u64, ascending), how many of the texts have it (u32), how many weights it has
// (u16); of each weight, by n-gram, its output (u16, ascending) and value (f16); the SHA-256 of all
// that as 64 hexadecimal digits. Version 2 is written with columns beside the text, whose features
// are n-grams here: behind the sizes it has the numbers of columns of numbers and of categories
// (u32 each), and of each column of numbers mean and deviation (f64 each; side_columns.h). Version
// 3 follows them with a byte for each of these columns: 1 if commas are before its decimals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tasks/classification/ngrams/ngram_model.h"

namespace finetune {

inline constexpr std::string_view kNgramFile = "ngrams.bin";
inline constexpr size_t kMostNgramFileBytes = size_t{16} << 20;  // that are written

// The file's bytes: at most `most_bytes`, not counting the biases. Leaves out the weights nearest
// to 0, and n-grams without weights. An output whose bias is infinite, because no row or every row
// had it, gets a finite bias.
std::string ngram_file_of(const NgramModel& model, size_t most_bytes = kMostNgramFileBytes);

struct StoredNgrams {
  NgramModel model;
  std::string sha256;  // stored in the file
};
// Error(model) naming `where` if the bytes are not such a file, or are damaged.
StoredNgrams read_ngram_file(std::string_view bytes, const std::string& where);

}  // namespace finetune
