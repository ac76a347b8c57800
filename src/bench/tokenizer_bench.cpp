// bench tokenizer: encodes a file's lines on all threads, repeatedly.
#include "bench/tokenizer_bench.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string_view>
#include <vector>

#include "bench/step_bench.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "core/threads/parallel.h"
#include "data/input_file.h"
#include "data/source/byte_source.h"
#include "tokenizer/tokenizer.h"
#include "weights/model_directory.h"

namespace finetune {
namespace {

constexpr double kTokenizerSeconds = 2;
constexpr int64_t kLeastPasses = 3;
constexpr size_t kChunkBytes = size_t{1} << 16;  // lines per task

// Ranges of lines of about kChunkBytes each, as indices of their first lines.
std::vector<size_t> chunks_of(const std::vector<std::string_view>& lines) {
  std::vector<size_t> begins{0};
  size_t bytes = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    bytes += lines[i].size();
    if (bytes < kChunkBytes) continue;
    begins.push_back(i + 1);
    bytes = 0;
  }
  if (begins.back() != lines.size()) begins.push_back(lines.size());
  return begins;
}

}  // namespace

TokenizerBenchResult bench_tokenizer(const std::string& model, const std::string& input,
                                     int64_t thread_count, Clock clock) {
  check_clock(clock, thread_count);
  TokenizerBenchResult result{model, input};
  const InputFile file = as_text(in_memory(std::filesystem::path(input), kSecondsForWriter));
  const std::string text = read_text_file(file.content);
  std::vector<std::string_view> lines;
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    lines.push_back(line);
    result.bytes += int64_t(line.size());
  }
  if (lines.empty()) throw data_error(input, ": holds no text");
  const std::unique_ptr<Tokenizer> tokenizer = Tokenizer::load(existing_tokenizer_directory(model));
  set_threads(thread_count > 0 ? int(thread_count) : available_cores());
  result.threads = threads();
  result.lines = int64_t(lines.size());

  // As in a data reader, each chunk keeps its own result; later passes reuse the memory.
  const std::vector<size_t> begins = chunks_of(lines);
  std::vector<TokenBuffer> buffers(begins.size() - 1);
  std::vector<double> seconds;
  for (double sum = 0; sum < kTokenizerSeconds || int64_t(seconds.size()) < kLeastPasses;) {
    const double start = seconds_now(clock);
    parallel_for(int64_t(buffers.size()), [&](int64_t c) {
      TokenBuffer& buffer = buffers[size_t(c)];
      buffer.clear();
      for (size_t i = begins[size_t(c)]; i < begins[size_t(c) + 1]; ++i) {
        tokenizer->encode(lines[i], buffer);
      }
    });
    seconds.push_back(seconds_now(clock) - start);
    sum += seconds.back();
  }
  for (const TokenBuffer& buffer : buffers) result.tokens += int64_t(buffer.size());
  std::sort(seconds.begin(), seconds.end());
  result.passes = int64_t(seconds.size());
  result.best_seconds = seconds.front();
  result.median_seconds = seconds[seconds.size() / 2];
  return result;
}

JsonObject to_json(const TokenizerBenchResult& result) {
  JsonObject out;
  out.add("model", result.model);
  out.add("input", result.input);
  out.add("threads", result.threads);
  out.add("lines", result.lines);
  out.add("bytes", result.bytes);
  out.add("tokens", result.tokens);
  out.add("passes", result.passes);
  out.add("megabytes_per_second", double(result.bytes) / 1e6 / result.best_seconds);
  out.add("median_megabytes_per_second", double(result.bytes) / 1e6 / result.median_seconds);
  out.add("tokens_per_second", double(result.tokens) / result.best_seconds);
  return out;
}

std::string to_text(const TokenizerBenchResult& result) {
  return concat(result.input, ": ", counted(result.lines, "line"), ", ",
                format_fixed(double(result.bytes) / 1e6, 2), " MB, ",
                counted(result.tokens, "token"), ", ", counted(result.threads, "thread"), "\n",
                format_fixed(double(result.bytes) / 1e6 / result.best_seconds, 2),
                " MB/s, ids and offsets (median of ", counted(result.passes, "pass", "passes"), " ",
                format_fixed(double(result.bytes) / 1e6 / result.median_seconds, 2), "; ",
                format_fixed(double(result.tokens) / 1e6 / result.best_seconds, 2),
                " M tokens/s)\n");
}

}  // namespace finetune
