// Converts an input to the words of a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fuzz/target.h"

namespace finetune::fuzz {

// One word per line; words contain no zero byte.
inline std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::string_view line : split(text, '\n'))
    words.emplace_back(line.substr(0, line.find('\0')));
  if (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

}  // namespace finetune::fuzz
