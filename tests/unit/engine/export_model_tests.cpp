// Exported model directories: content, reload, failures and kills.
#include <doctest/doctest.h>
#include <signal.h>
#include <simdjson.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "../shared.h"
#include "../small_encoder.h"
#include "core/error.h"
#include "core/files/files.h"
#include "engine/export_model.h"
#include "engine/pretrained.h"
#include "temporary_directory.h"

using namespace finetune;
using test::one_layer_config;

namespace {

constexpr const char* kExported = "golden/tiny-bert-classification";
constexpr const char* kSource = R"({
  "architectures": ["BertModel"], "hidden_size": 64, "layer_norm_eps": 1e-12,
  "id2label": {"0": "stale"}, "label2id": {"stale": 0}, "num_labels": 1,
  "problem_type": "regression", "my_own_key": {"nested": [1, 2.5, null]}, "dtype": "float16",
  "finetune": {"old": true}
})";

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("config.json: unknown keys stay, another task's labels go") {
  ParameterTable table(one_layer_config(), Head{HeadKind::sequence, 2});
  ArenaTensors tensors(table, nullptr);
  ModelExport model{tensors,
                    kSource,
                    R"({"id2label": {"0": "Café", "1": "x"}, "finetune": {"max_length": 128}})",
                    {}};
  simdjson::dom::parser parser;
  std::string text = exported_config(model, DType::f32);
  simdjson::dom::element json = parser.parse(text);
  CHECK(std::string_view(json["architectures"].at(0)) == "BertForSequenceClassification");
  CHECK(std::string_view(json["model_type"]) == "bert");
  CHECK(std::string_view(json["torch_dtype"]) == "float32");
  CHECK(json["dtype"].error() == simdjson::NO_SUCH_FIELD);
  CHECK(json["problem_type"].error() == simdjson::NO_SUCH_FIELD);
  CHECK(std::string_view(json["id2label"]["0"]) == "Café");
  CHECK(int64_t(json["label2id"]["Café"]) == 0);
  CHECK(int64_t(json["label2id"]["x"]) == 1);
  CHECK(json["label2id"]["stale"].error() == simdjson::NO_SUCH_FIELD);
  CHECK(int64_t(json["finetune"]["max_length"]) == 128);
  CHECK(json["finetune"]["old"].error() == simdjson::NO_SUCH_FIELD);
  CHECK(double(json["my_own_key"]["nested"].at(1)) == 2.5);
  CHECK(double(json["layer_norm_eps"]) == 1e-12);

  ParameterTable qa(one_layer_config(), Head{HeadKind::token, 2});
  ArenaTensors answers(qa, nullptr);
  text = exported_config({answers, kSource, "{}", {}}, DType::bf16);
  json = parser.parse(text);
  CHECK(std::string_view(json["architectures"].at(0)) == "BertForQuestionAnswering");
  CHECK(std::string_view(json["torch_dtype"]) == "bfloat16");
  CHECK(json["id2label"].error() == simdjson::NO_SUCH_FIELD);
}

TEST_CASE("a model that finetune wrote is known by its config.json") {
  test::TemporaryDirectory directory;
  const fs::path config = directory / "config.json";
  CHECK_FALSE(is_exported_model(directory.path()));
  auto is_ours = [&](const std::string& text) {
    write_file(config, text);
    return is_exported_model(directory.path());
  };
  ParameterTable table(one_layer_config(), Head{HeadKind::sequence, 2});
  ArenaTensors tensors(table, nullptr);
  const ModelExport model{tensors, R"({"finetune_version": "0.0.1", "z": 1})", "{}", {}};
  const std::string text = exported_config(model, DType::f32);
  CHECK(is_ours(text));
  CHECK(text.find("0.0.1") == std::string::npos);
  CHECK(text == with_version(text));
  CHECK(is_ours(R"({"hidden_size": 8, "finetune": {"task": "qa"}})"));
  CHECK_FALSE(is_ours(R"({"finetune": {}, "finetune_version": "0.1.0", "hidden_size": 8})"));
  for (const char* other :
       {"", "{}", "[]", "null", "{\"finetune_version\"", "\"finetune_version\""}) {
    CAPTURE(other);
    CHECK_FALSE(is_ours(other));
  }
}

TEST_CASE("an exported model loads to the same bits; exporting again replaces it whole") {
  if (!test::have_shared(kExported)) return;
  fs::path source = test::shared_path(kExported);
  test::TemporaryDirectory directory;
  EncoderConfig config =
      parse_config(read_text_file(source / "config.json"), source / "config.json");
  ParameterTable table(config, Head{HeadKind::sequence, 24});
  std::vector<float> weights(size_t(table.size())), again(weights);
  auto from = open_weights(source);
  load_pretrained(table, *from, 0.02, 1, HeadPolicy::require, weights.data());

  ArenaTensors tensors(table, weights.data());
  const std::string words = read_text_file(source / "vocab.txt"),
                    settings = read_text_file(source / "tokenizer_config.json");
  ModelExport model{tensors,
                    config.source_json,
                    R"({"id2label": {"0": "a"}})",
                    {{"vocab.txt", words}, {"tokenizer_config.json", settings}}};
  fs::path target = directory / "run" / "model";
  export_model(target, model);
  std::vector<std::string> expected{"config.json", "model.safetensors", "tokenizer_config.json",
                                    "vocab.txt"};
  CHECK(names_in(target) == expected);
  CHECK(read_text_file(target / "vocab.txt") == read_text_file(source / "vocab.txt"));
  auto exported = open_weights(target);
  load_pretrained(table, *exported, 0.02, 1, HeadPolicy::require, again.data());
  CHECK(std::memcmp(again.data(), weights.data(), weights.size() * sizeof(float)) == 0);

  write_file(target / "README.md", "mine");
  model.files.pop_back();
  export_model(target, model);
  CHECK(names_in(target) ==
        std::vector<std::string>{"README.md", "config.json", "model.safetensors", "vocab.txt"});
  CHECK(read_text_file(target / "README.md") == "mine");
  write_file(target / "README.md", concat(kCardMarker, "1"));
  model.files.push_back({"README.md", "a new card"});
  export_model(target, model);
  CHECK(read_text_file(target / "README.md") == "a new card");
  CHECK(names_in(directory / "run") == std::vector<std::string>{"model"});
}

TEST_CASE("an export that fails leaves the old model") {
  test::TemporaryDirectory directory;
  ParameterTable table(one_layer_config(), Head{HeadKind::sequence, 2});
  std::vector<float> weights(size_t(table.size()), 1.0f);
  ArenaTensors tensors(table, weights.data());
  ModelExport model{tensors, "{}", "{}", {}};
  export_model(directory / "model", model);
  std::string before = read_text_file(directory / "model/model.safetensors");
  weights.assign(weights.size(), 2.0f);
  model.files = {{"no-such-folder/vocab.txt", ""}};
  CHECK_THROWS_WITH_AS(export_model(directory / "model", model), doctest::Contains("vocab.txt"),
                       Error);
  CHECK(names_in(directory.path()) == std::vector<std::string>{"model"});
  CHECK((read_text_file(directory / "model/model.safetensors") == before));
  write_file(directory / "file", "x");
  model.files.clear();
  CHECK_THROWS_AS(export_model(directory / "file" / "model", model), Error);
}

TEST_CASE("an export killed at any moment leaves the old model or the new one") {
  test::TemporaryDirectory directory;
  ParameterTable table(one_layer_config(), Head{HeadKind::sequence, 2});
  std::vector<float> weights(size_t(table.size()), 0.0f), read(weights);
  ArenaTensors tensors(table, weights.data());
  auto export_value = [&](int value) {
    weights.assign(weights.size(), float(value));
    export_model(directory / "model", {tensors, "{}", concat("{\"value\": ", value, "}"), {}});
  };
  export_value(1);
  simdjson::dom::parser parser;
  for (int round = 0; round < 12; ++round) {
    pid_t child = fork();
    if (child == 0) {
      for (int value = 2;; ++value) export_value(value);
    }
    ::usleep(useconds_t(2000 + 6007 * round));
    ::kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    double value =
        double(int64_t(parser.load((directory / "model/config.json").string())["value"]));
    read_tensor(*open_weights(directory / "model"), "classifier.bias", {2}, read.data());
    CHECK(double(read[1]) == value);
  }
}
