// What a model's vocabulary decides when both are opened.
#include <doctest/doctest.h>

#include "../shared.h"
#include "engine/engine.h"
#include "temporary_directory.h"

namespace finetune {

TEST_CASE("a BERT with XLM-RoBERTa's vocabulary has one token type for both texts of a pair") {
  test::TemporaryDirectory directory;
  const std::filesystem::path source =
      test::shared_path("golden/family/xlm-roberta/classification");
  for (const char* file : {"model.safetensors", "tokenizer.json"}) directory.copy(source / file);
  directory.write("config.json", R"({"model_type": "bert", "vocab_size": 452})");
  CHECK_FALSE(open_model(directory.path().string()).config.embeddings.pair_types);
  CHECK(open_model(test::shared_path("golden/tiny-bert-classification").string())
            .config.embeddings.pair_types);
}

TEST_CASE("token types of a pair follow the vocabulary and what tokenizer_config.json lists") {
  test::TemporaryDirectory directory;
  const std::filesystem::path source = test::shared_path("golden/tiny-bert-classification");
  for (const char* file : {"model.safetensors", "vocab.txt"}) directory.copy(source / file);
  const auto has_types = [&](const char* config, const char* tokenizer) {
    directory.write("config.json", config);
    directory.write("tokenizer_config.json", tokenizer);
    return open_model(directory.path().string()).config.embeddings.pair_types;
  };
  constexpr const char* kBert = R"({"model_type": "bert", "vocab_size": 4000})";
  constexpr const char* kOneType =
      R"({"model_type": "roberta", "vocab_size": 4000, "type_vocab_size": 1})";
  constexpr const char* kTwoTypes =
      R"({"model_type": "roberta", "vocab_size": 4000, "type_vocab_size": 2})";
  CHECK(has_types(kBert, "{}"));
  CHECK_FALSE(has_types(kBert, R"({"model_input_names": ["input_ids", "attention_mask"]})"));
  CHECK(has_types(kBert, R"({"model_input_names": ["input_ids", "token_type_ids"]})"));
  CHECK_FALSE(has_types(kOneType, "{}"));
  CHECK(has_types(kTwoTypes, "{}"));
}

}  // namespace finetune
