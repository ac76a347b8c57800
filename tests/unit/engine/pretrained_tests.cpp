// Which pretrained weights load, which heads are kept, what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../contains.h"
#include "../shared.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/threads/parallel.h"
#include "engine/pretrained.h"
#include "temporary_directory.h"
#include "weights/weights.h"

using namespace finetune;
using finetune::test::contains;

namespace {

struct Model {
  BertConfig config;
  std::unique_ptr<WeightSource> source;

  explicit Model(const char* name) : Model(test::shared_path(name)) {}
  explicit Model(const fs::path& directory)
      : config(parse_config(read_text_file(directory / "config.json"), directory / "config.json")),
        source(open_weights(directory, config.architecture->base_prefix)) {}
};

struct Loaded {
  std::vector<float> arena;
  PretrainedReport report;
};

Loaded load(const Model& model, const ParameterTable& table, HeadPolicy policy, uint64_t seed = 1) {
  Loaded loaded{std::vector<float>(size_t(table.size())), {}};
  loaded.report = load_pretrained(table, *model.source, model.config.initializer_range, seed,
                                  policy, loaded.arena.data());
  return loaded;
}

std::string refusal(const Model& model, const ParameterTable& table, HeadPolicy policy) {
  try {
    load(model, table, policy);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::model);
    std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return "";
}

bool lists(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether a parameter holds exactly the file's values.
bool equals_file(const Model& model, const ParameterTable& table, const std::vector<float>& arena,
                 const std::string& name) {
  const Parameter& parameter = *table.find(name);
  std::vector<float> values(size_t(parameter.size()));
  model.source->read(*model.source->find(name), values.data());
  return std::memcmp(values.data(), &arena[size_t(parameter.offset)],
                     values.size() * sizeof(float)) == 0;
}

constexpr const char* kTiny = "golden/tiny-bert-classification";
const Head kTwentyFour{HeadKind::sequence, 24};

}  // namespace

TEST_CASE("a fine-tuned model is loaded whole, its head kept") {
  if (!test::have_shared(kTiny)) return;
  Model model(kTiny);
  ParameterTable table(model.config, kTwentyFour);
  CHECK(head_state(table, *model.source) == HeadState::fits);
  Loaded loaded = load(model, table, HeadPolicy::keep_or_new);
  CHECK(loaded.report.head_kept);
  CHECK(!loaded.report.pooler_initialized);
  CHECK(loaded.report.initialized.empty());
  CHECK(loaded.report.unused.empty());
  CHECK(loaded.report.loaded.size() == table.parameters().size());
  for (const auto& parameter : table.parameters()) {
    CAPTURE(parameter.name);
    CHECK(equals_file(model, table, loaded.arena, parameter.name));
  }
  CHECK(contains(loaded.report.lines.at(1), "is kept"));
  // Gaps between tensors stay zero: the sum over the table is the sum over the arena.
  double in_table = 0, in_arena = 0;
  for (float value : loaded.arena) in_arena += std::abs(double(value));
  for (const auto& parameter : table.parameters()) {
    for (int64_t i = 0; i < parameter.size(); ++i) {
      in_table += std::abs(double(loaded.arena[size_t(parameter.offset + i)]));
    }
  }
  CHECK(in_arena == doctest::Approx(in_table).epsilon(1e-12));
  load(model, table, HeadPolicy::require);
}

TEST_CASE("--reinit-head replaces the head and keeps the pooler") {
  if (!test::have_shared(kTiny)) return;
  Model model(kTiny);
  ParameterTable table(model.config, kTwentyFour);
  Loaded loaded = load(model, table, HeadPolicy::renew);
  CHECK(!loaded.report.head_kept);
  CHECK(loaded.report.initialized.size() == 2);
  CHECK(equals_file(model, table, loaded.arena, "bert.pooler.dense.weight"));
  CHECK(!equals_file(model, table, loaded.arena, "classifier.weight"));
  CHECK(loaded.report.unused == std::vector<std::string>{"classifier.bias", "classifier.weight"});
  // By seed alone, whatever the number of threads.
  int before = threads();
  set_threads(3);
  CHECK(load(model, table, HeadPolicy::renew).arena == loaded.arena);
  CHECK(load(model, table, HeadPolicy::renew, 2).arena != loaded.arena);
  set_threads(before);
}

TEST_CASE("a head of another shape is an error unless renewed") {
  if (!test::have_shared(kTiny)) return;
  Model model(kTiny);
  ParameterTable table(model.config, Head{HeadKind::sequence, 3});
  CHECK(head_state(table, *model.source) == HeadState::other_shape);
  std::string message = refusal(model, table, HeadPolicy::keep_or_new);
  CHECK(contains(message, "classifier."));
  CHECK(contains(message, "(24"));
  CHECK(contains(message, "(3"));
  CHECK(contains(message, "--reinit-head"));
  CHECK(!contains(refusal(model, table, HeadPolicy::require), "--reinit-head"));
  CHECK(refusal(model, table, HeadPolicy::renew) == "");
}

TEST_CASE("the encoder of a classifier starts a question-answering model") {
  if (!test::have_shared(kTiny)) return;
  Model model(kTiny);
  ParameterTable table(model.config, Head{HeadKind::token, 2});
  CHECK(head_state(table, *model.source) == HeadState::absent);
  Loaded loaded = load(model, table, HeadPolicy::keep_or_new);
  CHECK(!loaded.report.head_kept);
  CHECK(!loaded.report.pooler_initialized);
  CHECK(lists(loaded.report.initialized, "qa_outputs.weight"));
  CHECK(loaded.report.unused.size() == 4);
  std::string message = refusal(model, table, HeadPolicy::require);
  CHECK(contains(message, "no trained head"));
  CHECK(contains(message, "qa_outputs"));
}

TEST_CASE("weights without prefix and head") {
  constexpr const char* name = "golden/formats/safetensors-no-prefix-no-head";
  if (!test::have_shared(name)) return;
  Model model(name);
  ParameterTable table(model.config, kTwentyFour);
  Loaded loaded = load(model, table, HeadPolicy::keep_or_new);
  CHECK(lists(loaded.report.initialized, "classifier.weight"));
  CHECK(equals_file(model, table, loaded.arena, "bert.embeddings.word_embeddings.weight"));
  CHECK(loaded.report.unused.size() == 1);
  CHECK(contains(loaded.report.unused.at(0), "position_ids"));
  CHECK(contains(refusal(model, table, HeadPolicy::require), "no trained head"));
}

TEST_CASE("a missing pooler is newly initialised, in one sentence") {
  if (!test::have_shared(kTiny)) return;
  test::TemporaryDirectory directory;
  Model full(kTiny);
  ParameterTable table(full.config, kTwentyFour);
  Loaded whole = load(full, table, HeadPolicy::keep_or_new);
  std::vector<WeightView> views;
  for (const auto& parameter : table.parameters()) {
    if (contains(parameter.name, "pooler")) continue;
    views.push_back({parameter.name, parameter.shape, &whole.arena[size_t(parameter.offset)]});
  }
  write_safetensors(directory / "model.safetensors", views, DType::f32);
  fs::copy_file(test::shared_path(kTiny) / "config.json", directory / "config.json");
  Model model(directory.path());
  Loaded loaded = load(model, table, HeadPolicy::keep_or_new);
  CHECK(loaded.report.pooler_initialized);
  CHECK(lists(loaded.report.initialized, "bert.pooler.dense.weight"));
  CHECK(std::count_if(loaded.report.lines.begin(), loaded.report.lines.end(),
                      [](const auto& line) { return contains(line, "no pooler"); }) == 1);
  CHECK(contains(refusal(model, table, HeadPolicy::require), "bert.pooler"));
}

TEST_CASE("what a broken model lacks is named") {
  struct Case {
    const char* name;
    const char* part;
  };
  for (auto [name, part] : {Case{"golden/broken/nan-weights", "nan"},
                            Case{"golden/broken/missing-encoder-tensor", "is missing"},
                            Case{"golden/broken/shape-not-of-config", "has shape"}}) {
    if (!test::have_shared(name)) continue;
    CAPTURE(name);
    Model model(name);
    std::string message =
        refusal(model, ParameterTable(model.config, kTwentyFour), HeadPolicy::keep_or_new);
    CAPTURE(message);
    CHECK(contains(message, "model.safetensors: tensor '"));
    CHECK(contains(message, part));
  }
}
