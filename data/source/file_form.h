// Recognises a file by its first bytes: plain text, packed text, or a binary form.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

enum class Packing { none, gzip, zstd };

// Returns whether more bytes are needed to recognise the file.
bool may_be_form(std::string_view beginning);

Packing packing_of(std::string_view beginning);

// Returns advice such as "is an Excel workbook; save its sheet as CSV", or "" if the file may be
// text. `name` is the file's name for the commands in the advice.
std::string advice_for_form(std::string_view beginning, const std::string& name);

}  // namespace finetune
