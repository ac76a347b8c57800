// What to say of a directory that holds runs or models, and is not a model itself.
#pragma once

#include <filesystem>
#include <string>

namespace finetune {

// "DIR: is a sweep, not a model; its best run by eval_accuracy is DIR/lr=1e-4", or "DIR: is not a
// model, but holds some; name one of them, such as DIR/a". Empty where no model is in `directory`.
std::string advice_on_collection(const std::filesystem::path& directory);

}  // namespace finetune
