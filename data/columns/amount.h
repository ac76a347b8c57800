// Numbers as people write them: amounts of money with signs, currencies and separators.
#pragma once

#include <optional>
#include <string_view>

namespace finetune {

// 12.50, -3,99, 1 234.56, 1,234, (12.00), 12.00-, $40.13, 40 EUR, 1e3; with DR behind it, a debit,
// a number is negative. A lone comma before three digits separates thousands, a lone point never
// does. Returns nothing for anything else.
std::optional<double> amount_of(std::string_view text);

}  // namespace finetune
