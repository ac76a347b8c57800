// The character maps of a sentencepiece model, which its library trusts.
#pragma once

#include <string_view>

namespace finetune {

// Whether the maps of a model's file, by which texts are normalized, lead nowhere outside of
// themselves: the library walks them without looking at bounds. A model without any is sound.
bool has_sound_charsmaps(std::string_view model);

}  // namespace finetune
