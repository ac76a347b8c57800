// What becomes of texts that are longer than a sample may be.
#pragma once

#include <cstdint>
#include <string_view>

namespace finetune {

inline constexpr std::string_view kCutWord = "cut", kWindowsWord = "windows";
inline constexpr std::string_view kLongTextWords = "cut|windows";
inline constexpr int64_t kMostStride = int64_t{1} << 32;
inline constexpr int64_t kMostWindows = int64_t{1} << 16;

struct LongTexts {
  bool in_windows = false;    // else they are cut
  int64_t stride = 32;        // tokens that neighbouring windows share, half a window at most
  int64_t most_windows = 16;  // of a text: what is behind them is cut
};

}  // namespace finetune
