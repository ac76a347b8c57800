// Reads the keys of tokenizer_config.json that concern a model's inputs.
#include "tokenizer/stated_inputs.h"

#include <string_view>

#include "tokenizer/json_file.h"
#include "tokenizer/special_tokens.h"

namespace finetune {

StatedInputs read_stated_inputs(const std::filesystem::path& directory) {
  StatedInputs stated;
  const auto config = open_tokenizer_config(directory);
  if (!config) return stated;
  const auto side = config->get<std::string_view>(config->root(), "truncation_side");
  stated.cuts_left = side == "left";
  const auto names = config->get<simdjson::dom::array>(config->root(), "model_input_names");
  if (!names) return stated;
  stated.token_types = false;
  for (const simdjson::dom::element name : *names) {
    std::string_view text;
    if (!name.get(text) && text == "token_type_ids") stated.token_types = true;
  }
  return stated;
}

}  // namespace finetune
