// Whether a message contains the expected text.
#pragma once

#include <string_view>

namespace finetune::test {

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace finetune::test
