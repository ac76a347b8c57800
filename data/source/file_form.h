// What a file is by its first bytes: plain, packed text, or a form that holds no text.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

enum class Packing { none, gzip, zstd };

// Whether a longer beginning might say something else.
bool may_be_form(std::string_view beginning);

Packing packing_of(std::string_view beginning);

// "is an Excel workbook; save its sheet as CSV", or empty for what may be text. `name` is the
// file's, for the commands that the advice has.
std::string advice_for_form(std::string_view beginning, const std::string& name);

}  // namespace finetune
