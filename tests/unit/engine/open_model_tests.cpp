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

}  // namespace finetune
