// Shared by the tests of classification: a tokenizer without files, and errors.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/numeric/packed_batch.h"
#include "core/text/text.h"
#include "tasks/evaluator.h"
#include "temporary_directory.h"
#include "tokenizer/tokenizer.h"

namespace finetune::test {

// Words between spaces; the id of a word is 200 + its length.
class WordTokenizer final : public Tokenizer {
 public:
  WordTokenizer() { special_ = {101, 102, 0, 100, -1}; }
  void encode(std::string_view text, TokenBuffer& out) const override {
    uint32_t offset = 0;
    for (std::string_view word : split(text, ' ')) {
      uint32_t end = offset + uint32_t(word.size());
      if (!word.empty()) {
        out.ids.push_back(200 + int32_t(word.size()));
        out.begins.push_back(offset);
        out.ends.push_back(end);
      }
      offset = end + 1;
    }
  }
  int32_t vocabulary_size() const override { return 1000; }
  std::string_view token(int32_t) const override { return ""; }
  bool continues_word(int32_t) const override { return false; }
  std::vector<std::filesystem::path> files() const override { return {}; }
};

inline const WordTokenizer kTokenizer;

// Samples by index, in one batch without tokens.
inline PackedBatch batch_of(std::vector<uint32_t> indices) {
  PackedBatch batch;
  batch.samples.resize(indices.size());
  std::iota(batch.samples.begin(), batch.samples.end(), 0u);
  batch.indices = std::move(indices);
  return batch;
}

// Gives an evaluator the logits (rows, outputs) of its rows, some rows at a time. Returns the
// number of chunks.
inline int64_t add_all(Evaluator& evaluator, std::span<const float> logits, uint32_t at_once = 3) {
  const auto outputs = size_t(evaluator.head().outputs);
  const auto rows = uint32_t(logits.size() / outputs);
  int64_t chunks = 0;
  while (evaluator.next()) ++chunks;
  for (uint32_t begin = 0; begin < rows; begin += at_once) {
    std::vector<uint32_t> indices(std::min(rows - begin, at_once));
    std::iota(indices.begin(), indices.end(), begin);
    evaluator.add(batch_of(indices), logits.data() + begin * outputs);
  }
  return chunks;
}

struct Failure {
  ExitCode code = ExitCode::done;
  std::string message;
};

// The Error that `body` throws, with paths relative to the folder.
template <typename Body>
Failure failure_of(const TemporaryDirectory& folder, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.code(), folder.without_path(error.what())};
  }
  return {};
}

}  // namespace finetune::test
