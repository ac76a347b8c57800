// Reads rows piece by piece, tokenizes them on all threads, and finds repeated texts.
#include "tasks/masked_language/texts.h"

#include <algorithm>
#include <span>
#include <unordered_set>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "data/columns/row_chunk.h"
#include "data/columns/text_columns.h"
#include "data/packing.h"
#include "data/rows/row_files.h"
#include "data/text_sum.h"
#include "tasks/texts/cut_texts.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {
namespace {

constexpr int64_t kPieceRows = 16384;

// A set of samples by number; samples are equal if their tokens are.
class DistinctTexts {
 public:
  explicit DistinctTexts(const TokenizedSamples& samples)
      : numbers_(0, Hash{samples}, Equal{samples}) {}
  // Returns false if an earlier sample has the same tokens.
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

  std::unordered_set<uint32_t, Hash, Equal> numbers_;
};

bool has_text(RowValues row, const TextColumns& columns) {
  return std::any_of(columns.text.begin(), columns.text.end(),
                     [&](size_t column) { return !trim(row[column]).empty(); });
}

std::vector<uint32_t> distinct_texts(const SampleSet& set) {
  DistinctTexts distinct(set.samples);
  std::vector<uint32_t> kept;
  for (uint32_t i = 0; i < uint32_t(set.samples.size()); ++i) {
    if (distinct.add(i)) kept.push_back(i);
  }
  return kept;
}

void drop_repeated(Texts& texts) {
  const std::vector<uint32_t> kept = distinct_texts(texts.set);
  texts.repeated = texts.set.samples.size() - int64_t(kept.size());
  if (texts.repeated > 0) texts.set = select_texts(texts.set, kept);
}

}  // namespace

Texts read_texts(const std::vector<InputFile>& files, const TaskOptions& options,
                 const Tokenizer& tokenizer, int64_t max_length, int64_t limit) {
  Texts texts;
  RowFiles rows(files, row_options_of(options, true));
  const TextColumns columns =
      find_text_columns(rows.columns(), rows.first_file(), options.column_names());
  RowChunk chunk;
  Row row;
  auto take = [&] {
    const SampleSet piece = encode_rows(tokenizer, chunk.rows(), columns, max_length);
    append(piece.samples, texts.set.samples);
    texts.set.add_counts(piece);
    chunk.clear();
  };
  while ((limit == 0 || texts.set.examples < limit) && rows.next(row)) {
    if (!has_text(row.values, columns)) {
      ++texts.empty;
      continue;
    }
    chunk.add(row.values);
    ++texts.set.examples;
    if (!chunk.has_room(kPieceRows)) take();
  }
  if (chunk.size() > 0) take();
  texts.dropped = rows.skipped_rows();
  if (texts.set.examples == 0) {
    throw data_error(rows.first_file().string(), ": holds no text (", texts.empty, " empty rows, ",
                     texts.dropped, " unusable ones)");
  }
  texts.read = texts.set.examples;
  if (options.distinct_texts) drop_repeated(texts);
  return texts;
}

SampleSet select_texts(const SampleSet& from, const std::vector<uint32_t>& numbers) {
  SampleSet out;
  out.examples = int64_t(numbers.size());
  out.add_counts(from);
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

int64_t repeated_texts(const SampleSet& set) {
  return set.samples.size() - int64_t(distinct_texts(set).size());
}

int64_t trained_texts(const SampleSet& train, const SampleSet& eval) {
  const auto sum = [](const SampleSet& set, int64_t i) {
    const auto ids =
        std::span(set.samples.ids)
            .subspan(size_t(set.samples.offsets[size_t(i)]), size_t(set.samples.length(i)));
    const std::string_view bytes(reinterpret_cast<const char*>(ids.data()), ids.size_bytes());
    return text_sum({&bytes, 1});
  };
  std::vector<TextSum> sums;
  for (int64_t i = 0; i < train.samples.size(); ++i) sums.push_back(sum(train, i));
  const TrainedTexts trained(std::move(sums));
  int64_t count = 0;
  for (int64_t i = 0; i < eval.samples.size(); ++i) count += trained.contains(sum(eval, i));
  return count;
}

std::vector<std::string> describe_texts(std::string_view name, const Texts& texts,
                                        int64_t max_length, int64_t positions, bool distinct) {
  CutTexts cut;
  cut.max_length = max_length;
  cut.positions = positions;
  cut.may_have_windows = false;
  cut.add(texts.set);
  cut.rows = texts.read;
  const int64_t count = texts.set.examples;
  std::string line =
      concat(name, ": ", counted(count, "text"), ", ", counted(cut.tokens, "token"), " (",
             format_fixed(double(cut.tokens) / double(std::max<int64_t>(1, count)), 1), " a text)");
  if (texts.read > 0) {
    line += concat(", ", cut.counts.truncated, " cut at ", counted(max_length, "token"),
                   texts.read == count ? "" : concat(" of ", texts.read, " read"));
  }
  if (texts.empty > 0) line += concat(", ", counted(texts.empty, "empty row"), " left out");
  if (texts.dropped > 0) line += concat(", ", counted(texts.dropped, "unusable row"), " dropped");
  if (texts.repeated > 0) {
    line +=
        concat(", ", texts.repeated,
               distinct ? " that repeat others left out" : " repeat others (--distinct keeps one)");
  }
  std::vector<std::string> lines{line};
  if (texts.read == 0) return lines;
  for (std::string& warning : text_warnings(name, cut)) lines.push_back(std::move(warning));
  return lines;
}

}  // namespace finetune
