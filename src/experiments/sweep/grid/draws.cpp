// Turns counter-based random numbers into values of a range.
#include "experiments/sweep/grid/draws.h"

#include <algorithm>
#include <cmath>

#include "core/numeric/philox.h"
#include "core/text/text.h"
#include "train/options/option_words.h"

namespace finetune {
namespace {

constexpr int kDigits = 3;  // significant ones of a drawn number

// FNV-1a, the same everywhere.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  return hash;
}

// To so many significant digits, by their decimal form.
double rounded(double value) {
  if (value == 0) return 0;
  const int exponent = int(std::floor(std::log10(std::abs(value))));
  const int places = kDigits - 1 - exponent;
  if (places < 0) return std::round(value / std::pow(10.0, -places)) * std::pow(10.0, -places);
  return parse_double(format_fixed(value, places)).value();
}

}  // namespace

std::string drawn_value(const std::string& option, const SweptRange& range, bool whole,
                        uint64_t seed, uint32_t number) {
  const PhiloxKey key = derive_key(seed ^ hash_of(option), uint32_t(RandomUse::sweep_draw));
  const double u = unit_interval(philox(key, {number, 0, 0, 0})[0]);
  const double least = whole ? std::ceil(range.least) : range.least;
  const double most = whole ? std::floor(range.most) : range.most;
  if (whole) {
    const double end = most + 1;  // each whole number has the interval up to the next one
    const double at = range.log ? std::exp(std::log(least) + u * (std::log(end) - std::log(least)))
                                : least + u * (end - least);
    return concat(int64_t(std::clamp(std::floor(at), least, most)));
  }
  const double at = range.log ? std::exp(std::log(least) + u * (std::log(most) - std::log(least)))
                              : least + u * (most - least);
  return number_word(std::clamp(rounded(at), least, most));
}

}  // namespace finetune
