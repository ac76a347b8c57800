// Text helpers: numbers, splitting, closest match, UTF-8. Numbers are written and parsed
// independent of the locale, and round-trip exactly.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace finetune {

// The shortest decimal form that round-trips; "nan", "inf" or "-inf".
std::string format_number(double value);
std::string format_number(float value);
// A fixed number of digits after the point: format_fixed(0.12345, 2) == "0.12".
std::string format_fixed(double value, int digits);
// Four digits after the point, or four significant ones below a tenth: format_measure(12.34567) ==
// "12.3457", format_measure(0.0001234567) == "0.0001235".
std::string format_measure(double value);
// Finished work and its speed: format_rate(1000, "rows", 0.5) == "1,000 rows in 0.50 s (2000 a
// second)".
std::string format_rate(int64_t count, std::string_view what, double seconds);

// Parses the whole of `text` as a number; nothing if it is not one.
std::optional<double> parse_double(std::string_view text);
std::optional<int64_t> parse_int(std::string_view text);

namespace detail {
inline void append(std::string& out, std::string_view part) {
  out.append(part);
}
inline void append(std::string& out, const char* part) {
  out.append(part);
}
inline void append(std::string& out, const std::string& part) {
  out.append(part);
}
inline void append(std::string& out, char part) {
  out.push_back(part);
}
inline void append(std::string& out, bool part) {
  out.append(part ? "true" : "false");
}
inline void append(std::string& out, double part) {
  out.append(format_number(part));
}
inline void append(std::string& out, float part) {
  out.append(format_number(part));
}
template <std::integral T>
void append(std::string& out, T part) {
  char buffer[24];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, part);
  out.append(buffer, result.ptr);
}
}  // namespace detail

template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);                                  // ASCII white space
bool ends_with_ignoring_case(std::string_view text, std::string_view ending);  // ASCII
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// "a, b, c, …": at most `most` parts, for messages.
std::string join_some(const std::vector<std::string>& parts, size_t most);

// The candidate with the smallest edit distance to `word`, if `word` may be a typo of it.
std::optional<std::string> closest_match(std::string_view word,
                                         const std::vector<std::string>& candidates);

// Returns the offset of the first byte that is not part of a valid UTF-8 sequence, or npos.
// Surrogates and overlong forms are invalid.
size_t invalid_utf8(std::string_view text);
size_t count_code_points(std::string_view valid_utf8);

// `text` in quotes for an error message, cut to `limit` bytes and escaped by printable().
std::string in_quotes(std::string_view text, size_t limit = 60);

}  // namespace finetune
