// Advice for a directory that holds runs or models but is not a model itself.
#pragma once

#include <filesystem>
#include <string>

namespace finetune {

// Returns "DIR: is a sweep, not a model; its best run by eval_accuracy is DIR/lr=1e-4", or "DIR: is
// not a model; it holds ..., name one of them: DIR/a". "" if `directory` holds no model.
std::string advice_on_collection(const std::filesystem::path& directory);

}  // namespace finetune
