// Validates the character maps of a sentencepiece model, which the library does not check.
#pragma once

#include <string_view>

namespace finetune {

// Returns whether the model's normalization maps stay within their bounds: the library walks them
// without bounds checks. A model without maps passes.
bool has_sound_charsmaps(std::string_view model);

}  // namespace finetune
