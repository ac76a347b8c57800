// Computes the token ranges of a row's windows.
#include "tasks/texts/text_windows.h"

#include <algorithm>

namespace finetune {
namespace {

int64_t cut_to_one(int64_t first, int64_t second, int64_t budget, std::vector<TextWindow>& out) {
  const PairLengths kept = truncate_longest_first(first, second, budget);
  out.push_back({{0, kept.first}, {0, kept.second}});
  return first - kept.first + second - kept.second;
}

}  // namespace

int64_t cut_to_windows(int64_t first, std::optional<int64_t> second, int64_t budget,
                       const LongTexts& long_texts, std::vector<TextWindow>& out) {
  out.clear();
  if (!long_texts.in_windows || first + second.value_or(0) <= budget) {
    return cut_to_one(first, second.value_or(0), budget, out);
  }
  const bool first_slides = first > second.value_or(0);
  const int64_t longer = std::max(first, second.value_or(0));
  const int64_t other = std::min(first, second.value_or(0)), kept = std::min(other, budget / 2);
  const int64_t window = budget - kept;
  std::vector<TokenRange> ranges = windows(longer, window, std::min(long_texts.stride, window / 2));
  if (int64_t(ranges.size()) > long_texts.most_windows) {
    ranges.resize(size_t(long_texts.most_windows));
  }
  for (const TokenRange range : ranges) {
    const TokenRange beside{0, kept};
    out.push_back(first_slides ? TextWindow{range, beside} : TextWindow{beside, range});
  }
  return longer - ranges.back().end + other - kept;
}

}  // namespace finetune
