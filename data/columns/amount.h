// Numbers as people write them: amounts of money with signs, currencies and separators.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace finetune {

// 12.50, -3,99, 1 234.56, 1,00,000, (12.00), 12.00-, $40.13, 40 EUR, 1e3; with DR or dr behind it,
// a debit, a number is negative. A lone comma before three digits separates thousands and a lone
// point does not; with `comma_decimals` it is the other way round. Returns nothing for anything
// else.
std::optional<double> amount_of(std::string_view text, bool comma_decimals = false);

// How a value separates its decimals. 1.234 and 1,234 are unsure: they may have thousands.
enum class Decimals { not_shown, behind_point, behind_comma, unsure_point, unsure_comma };
Decimals decimals_in(std::string_view text);

// Decides from a column's values whether its decimal separator is a comma.
class DecimalVotes {
 public:
  void add(std::string_view text) { ++votes_[size_t(decimals_in(text))]; }
  int64_t count(Decimals decimals) const { return votes_[size_t(decimals)]; }
  // A few values in a hundred may be written in another way.
  bool comma_decimals() const {
    return count(Decimals::behind_comma) > 20 * count(Decimals::behind_point);
  }

 private:
  int64_t votes_[5] = {};
};

// Facts about a column of numbers that training reports.
struct NumberColumn {
  int64_t unnumbered = 0;  // rows without a number
  DecimalVotes votes;
};

}  // namespace finetune
