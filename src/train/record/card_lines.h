// The lines of a model's card that change after training. A card that a user wrote stays as it is.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

inline constexpr std::string_view kDataHeading = "\n## Data\n";  // after the results
// Before the checksum of the weights.
inline constexpr std::string_view kWeightsSumLine = "\nsha256 of model.safetensors: ";

// Returns `card` with this checksum of model.safetensors.
std::string with_weights_sha256(std::string card, std::string_view sha256);

// Returns `card` with this promise (promise_in_words()) after its results, in place of an older
// one. Empty: without a promise.
std::string with_promise(std::string card, std::string_view promise);

}  // namespace finetune
