// What tokenizer_config.json states about a model's inputs.
#pragma once

#include <filesystem>
#include <optional>

namespace finetune {

struct StatedInputs {
  std::optional<bool> token_types;  // whether "model_input_names" lists token_type_ids
  bool cuts_left = false;           // "truncation_side" is "left"
};
// Error(model) if the file is damaged. Nothing is stated where there is none.
StatedInputs read_stated_inputs(const std::filesystem::path& directory);

}  // namespace finetune
