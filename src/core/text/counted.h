// Counts with their nouns.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "core/text/text.h"

namespace finetune {

// counted(1, "row") == "1 row", counted(2, "row") == "2 rows". For irregular plurals: counted(2,
// "text is empty", "texts are empty").
template <std::integral Count>
std::string counted(Count count, std::string_view one, std::string_view many = {}) {
  if (count == 1) return concat("1 ", one);
  return many.empty() ? concat(count, " ", one, "s") : concat(count, " ", many);
}

}  // namespace finetune
