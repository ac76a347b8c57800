// Tokenizes rows on all threads.
#include "tasks/texts/encoded_rows.h"

#include <algorithm>

#include "core/error.h"
#include "core/threads/parallel.h"
#include "tasks/texts/pair_types.h"
#include "tasks/texts/text_windows.h"
#include "tokenizer/encoding.h"

namespace finetune {
namespace {

constexpr int64_t kDefaultMaxLength = 128;
constexpr int64_t kRowsPerPiece = 256;

// The samples of consecutive rows, made by one thread.
struct Piece : TextCounts {
  std::vector<int32_t> ids;
  std::vector<int64_t> ends;  // per sample: its end in ids
  std::vector<uint32_t> second;
  std::vector<int64_t> windows;  // per row
};

void encode_piece(const Tokenizer& tokenizer, std::span<const RowValues> rows,
                  const TextColumns& columns, int64_t max_length, const LongTexts& long_texts,
                  Piece& piece) {
  const SpecialTokens& special = tokenizer.special();
  TokenBuffer tokens;
  const int64_t around = columns.pair ? special.around_pair() : special.around_single();
  std::string buffer;
  std::vector<TextWindow> windows;
  for (RowValues row : rows) {
    tokens.clear();
    tokenizer.encode(joined_text(row, columns, buffer), tokens);
    const int64_t first = int64_t(tokens.size());
    std::optional<int64_t> second;
    if (columns.pair) {
      tokenizer.encode(row[*columns.pair], tokens);
      second = int64_t(tokens.size()) - first;
    }
    const int64_t lost = cut_to_windows(first, second, max_length - around, long_texts, windows);
    piece.truncated += lost > 0;
    piece.lost += lost;
    piece.text_tokens += int64_t(tokens.size()) + around;
    piece.unknown += std::count(tokens.ids.begin(), tokens.ids.end(), special.unk);
    piece.windows.push_back(int64_t(windows.size()));
    for (const TextWindow& window : windows) {
      const int32_t* a = tokens.ids.data() + window.first.begin;
      const int64_t length = window.first.end - window.first.begin;
      piece.second.push_back(
          second ? append_pair(special, a, length, tokens.ids.data() + first + window.second.begin,
                               window.second.end - window.second.begin, piece.ids)
                 : append_single(special, a, length, piece.ids));
      piece.ends.push_back(int64_t(piece.ids.size()));
    }
  }
}

}  // namespace

RowOptions row_options_of(const TaskOptions& options, bool without_label) {
  RowOptions rows = options.rows;
  std::vector<std::string>& columns = rows.columns.emplace(options.column_names().of_texts());
  rows.optional_columns = options.side_columns();
  if (without_label) return rows;
  columns.push_back(options.label_column);
  rows.label_column = options.label_column;
  rows.label_lists = !options.multi_label_separator.empty();
  if (!options.eval_group.empty()) columns.push_back(options.eval_group);
  for (const std::string& slice : options.slices) {
    columns.push_back(slice.starts_with(kSeenPrefix) ? slice.substr(kSeenPrefix.size()) : slice);
  }
  return rows;
}

int64_t least_max_length(const SpecialTokens& special, bool pairs) {
  return pairs ? special.around_pair() + 2 : special.around_single() + 1;
}

int64_t checked_max_length(int64_t asked, const EncoderConfig& config, const SpecialTokens& special,
                           bool pairs) {
  int64_t positions = config.max_length();
  if (pairs) require_pair_types(config, "--text-pair-column");
  int64_t length = asked == 0 ? std::min(kDefaultMaxLength, positions) : asked;
  if (length > positions) {
    throw usage_error("--max-length ", length, " is beyond the model's ", positions, " positions");
  }
  int64_t least = least_max_length(special, pairs);
  if (length < least) {
    const int64_t around = pairs ? special.around_pair() : special.around_single();
    throw usage_error("--max-length ", length, ": must be at least ", least, ", for ", around,
                      " special tokens and one token of ", pairs ? "each text" : "text");
  }
  return length;
}

SampleSet encode_rows(const Tokenizer& tokenizer, std::span<const RowValues> rows,
                      const TextColumns& columns, int64_t max_length, const LongTexts& long_texts) {
  int64_t count = int64_t(rows.size());
  std::vector<Piece> pieces(size_t((count + kRowsPerPiece - 1) / kRowsPerPiece));
  parallel_ranges(count, kRowsPerPiece, [&](int64_t begin, int64_t end) {
    encode_piece(tokenizer, rows.subspan(size_t(begin), size_t(end - begin)), columns, max_length,
                 long_texts, pieces[size_t(begin / kRowsPerPiece)]);
  });

  SampleSet set;
  set.examples = count;
  size_t tokens = 0, samples = 0;
  for (const Piece& piece : pieces) {
    tokens += piece.ids.size();
    samples += piece.second.size();
  }
  set.samples.ids.reserve(tokens);
  set.samples.offsets.reserve(samples + 1);
  set.samples.second.reserve(samples);
  if (long_texts.in_windows) set.first_window.push_back(0);
  for (Piece& piece : pieces) {
    int64_t start = int64_t(set.samples.ids.size());
    set.samples.ids.insert(set.samples.ids.end(), piece.ids.begin(), piece.ids.end());
    for (int64_t end : piece.ends) set.samples.offsets.push_back(start + end);
    set.samples.second.insert(set.samples.second.end(), piece.second.begin(), piece.second.end());
    for (int64_t windows : piece.windows) {
      if (long_texts.in_windows) set.first_window.push_back(set.first_window.back() + windows);
    }
    set.add_counts(piece);
    piece = {};
  }
  return set;
}

std::vector<TextSum> token_sums(const SampleSet& set) {
  std::vector<TextSum> sums;
  std::string bytes;
  const auto add = [&](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  };
  for (int64_t row = 0; row < set.examples; ++row) {
    const IndexRange windows = set.samples_of(row);
    bytes = "|";  // text_sum() ignores outer white space
    for (int64_t i = windows.begin; i < windows.end; ++i) {
      const int64_t from = set.samples.offsets[size_t(i)], to = set.samples.offsets[size_t(i) + 1];
      add(&set.samples.second[size_t(i)], sizeof set.samples.second[0]);
      add(set.samples.ids.data() + from, size_t(to - from) * sizeof set.samples.ids[0]);
    }
    bytes += '|';
    const std::string_view part = bytes;
    sums.push_back(text_sum({&part, 1}));
  }
  return sums;
}

}  // namespace finetune
