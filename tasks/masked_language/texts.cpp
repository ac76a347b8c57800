// Reads rows piece by piece, tokenizes them on all threads, and finds texts that repeat.
#include "tasks/masked_language/texts.h"

#include <algorithm>
#include <span>
#include <unordered_set>

#include "core/error.h"
#include "core/text/text.h"
#include "data/packing.h"
#include "data/rows/row_files.h"
#include "tasks/classification/rows/cut_texts.h"
#include "tasks/classification/rows/dataset.h"
#include "tasks/classification/rows/row_chunk.h"
#include "tasks/classification/rows/text_columns.h"

namespace finetune {
namespace {

constexpr int64_t kPieceRows = 16384;

// Samples by their number, equal where their tokens are.
class DistinctTexts {
 public:
  explicit DistinctTexts(const TokenizedSamples& samples)
      : samples_(samples), numbers_(0, Hash{samples}, Equal{samples}) {}
  // False: an earlier one has its tokens.
  bool add(uint32_t number) { return numbers_.insert(number).second; }

 private:
  static std::span<const int32_t> tokens(const TokenizedSamples& samples, uint32_t number) {
    return std::span(samples.ids)
        .subspan(size_t(samples.offsets[number]), size_t(samples.length(number)));
  }
  struct Hash {
    const TokenizedSamples& samples;
    size_t operator()(uint32_t number) const {
      uint64_t hash = 0xCBF29CE484222325u;
      for (int32_t id : tokens(samples, number)) hash = (hash ^ uint32_t(id)) * 0x100000001B3u;
      return size_t(hash ^ (hash >> 32));
    }
  };
  struct Equal {
    const TokenizedSamples& samples;
    bool operator()(uint32_t a, uint32_t b) const {
      const auto x = tokens(samples, a), y = tokens(samples, b);
      return std::equal(x.begin(), x.end(), y.begin(), y.end());
    }
  };

  const TokenizedSamples& samples_;
  std::unordered_set<uint32_t, Hash, Equal> numbers_;
};

bool has_text(RowValues row, const TextColumns& columns) {
  return std::any_of(columns.text.begin(), columns.text.end(),
                     [&](size_t column) { return !trim(row[column]).empty(); });
}

void drop_repeated(Texts& texts, bool leave_out) {
  DistinctTexts distinct(texts.set.samples);
  std::vector<uint32_t> kept;
  for (uint32_t i = 0; i < uint32_t(texts.set.samples.size()); ++i) {
    if (distinct.add(i)) kept.push_back(i);
  }
  texts.repeated = texts.set.samples.size() - int64_t(kept.size());
  if (!leave_out || texts.repeated == 0) return;
  const int64_t truncated = texts.set.truncated;
  texts.set = select_texts(texts.set, kept);
  texts.set.truncated = truncated;
}

}  // namespace

Texts read_texts(const std::vector<InputFile>& files, const TaskOptions& options,
                 const Tokenizer& tokenizer, int64_t max_length, int64_t limit) {
  Texts texts;
  RowFiles rows(files, options.rows);
  const TextColumns columns = find_text_columns(rows.columns(), rows.first_file(), options);
  RowChunk chunk;
  Row row;
  auto take = [&] {
    const SampleSet piece = encode_rows(tokenizer, chunk.rows(), columns, max_length);
    append(piece.samples, texts.set.samples);
    texts.set.truncated += piece.truncated;
    chunk.clear();
  };
  while ((limit == 0 || texts.set.examples < limit) && rows.next(row)) {
    if (!has_text(row.values, columns)) {
      ++texts.empty;
      continue;
    }
    chunk.add(row.values);
    ++texts.set.examples;
    if (chunk.size() == kPieceRows || chunk.bytes() >= RowChunk::kMostBytes) take();
  }
  if (chunk.size() > 0) take();
  texts.dropped = rows.skipped_rows();
  if (texts.set.examples == 0) {
    throw data_error(rows.first_file().string(), ": holds no text (", texts.empty, " empty rows, ",
                     texts.dropped, " unusable ones)");
  }
  drop_repeated(texts, options.distinct_texts);
  return texts;
}

SampleSet select_texts(const SampleSet& from, const std::vector<uint32_t>& numbers) {
  SampleSet out;
  out.examples = int64_t(numbers.size());
  const SampleView samples = from.samples;
  size_t tokens = 0;
  for (uint32_t number : numbers) tokens += size_t(samples.length(number));
  out.samples.ids.reserve(tokens);
  out.samples.offsets.reserve(numbers.size() + 1);
  for (uint32_t number : numbers) {
    append(slice(samples, {number, number + 1}), out.samples);
  }
  return out;
}

std::string describe_texts(std::string_view name, const Texts& texts, int64_t max_length,
                           bool distinct) {
  std::string line =
      concat(name, ": ", texts.set.examples, " texts, ",
             describe_tokens(texts.set.examples, int64_t(texts.set.samples.ids.size()),
                             texts.set.truncated, max_length));
  if (texts.empty > 0) line += concat(", ", texts.empty, " empty rows left out");
  if (texts.dropped > 0) line += concat(", ", texts.dropped, " unusable rows dropped");
  if (texts.repeated == 0) return line;
  return line + concat(", ", texts.repeated,
                       distinct ? " that repeat others left out"
                                : " repeat others (--distinct keeps one)");
}

}  // namespace finetune
