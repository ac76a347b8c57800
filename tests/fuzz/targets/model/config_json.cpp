// config.json: the model's shape, and the options that a task stores in it.
#include "fuzz/target.h"
#include "model/config.h"
#include "tasks/registry.h"

namespace finetune::fuzz {
namespace {

void check_config(std::string_view input) {
  const EncoderConfig config = parse_config(input, "config.json");
  require(config.vocab_size > 0 && config.hidden_size > 0 && config.num_hidden_layers > 0 &&
              config.intermediate_size > 0 && config.max_length() > 0 &&
              config.type_vocab_size >= 0,
          "a size that is not positive");
  require(config.head_size() * config.num_attention_heads == config.hidden_size,
          "heads do not divide the hidden size");
  require(config.pad_token_id >= 0 && config.pad_token_id < config.vocab_size,
          "the padding is outside the vocabulary");
  for (HeadKind kind : {HeadKind::sequence, HeadKind::token}) {
    require(config.head_dropout(kind) >= 0 && config.head_dropout(kind) < 1,
            "dropout is not a probability");
  }
  require(int64_t(config.labels.size()) <= kMostLabels, "more labels than there may be");
  require(config.source_json == input, "the text is not kept");
  for (const TaskTraits& task : all_tasks()) {
    const TaskOptions options = task.stored_options(config);
    require(options.max_length >= 0, "a stored length is negative");
  }
}

const Registration kConfigJsonTarget({.name = "config_json", .run = check_config});

}  // namespace
}  // namespace finetune::fuzz
