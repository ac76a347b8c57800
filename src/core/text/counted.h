// Counts with their nouns.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "core/text/shown_numbers.h"
#include "core/text/text.h"

namespace finetune {

// counted(1, "row") == "1 row", counted(2000, "row") == "2,000 rows". For irregular plurals:
// counted(2, "text is empty", "texts are empty").
template <std::integral Count>
std::string counted(Count count, std::string_view one, std::string_view many = {}) {
  if (count == 1) return concat("1 ", one);
  const std::string number = with_thousands(double(count));
  return many.empty() ? concat(number, " ", one, "s") : concat(number, " ", many);
}

}  // namespace finetune
