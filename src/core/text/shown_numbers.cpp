// Writes numbers with few digits.
#include "core/text/shown_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "core/text/text.h"

namespace finetune {

std::string significant(double value, int digits) {
  char buffer[64];
  const auto end =
      std::to_chars(buffer, std::end(buffer), value, std::chars_format::general, digits);
  return {buffer, end.ptr};
}

std::string three_digits(double value) {
  const double size = std::abs(value);
  if ((!(size >= 0.001) && size != 0) || size >= 1e6) return significant(value, 3);
  return format_fixed(value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

std::string with_thousands(double count, int digits) {
  std::string text = format_fixed(count, digits);
  const size_t whole = std::min(text.find('.'), text.size());
  for (int64_t at = int64_t(whole) - 3; at > 0; at -= 3) text.insert(size_t(at), 1, ',');
  return text;
}

}  // namespace finetune
