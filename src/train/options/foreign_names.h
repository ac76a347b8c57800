// Options by the names that Hugging Face's Trainer and its example scripts have for them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace finetune {

// "--learning_rate is --lr here", for an option that finetune does not have under this name (with
// '-' or '_'); nothing if it is not known elsewhere, or `has` no option of ours that it stands for.
std::optional<std::string> foreign_option_hint(
    std::string_view name, const std::function<bool(std::string_view own)>& has);

}  // namespace finetune
