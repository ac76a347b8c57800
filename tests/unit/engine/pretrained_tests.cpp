// Which pretrained weights load, which heads are kept, and errors.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../contains.h"
#include "../model_parts.h"
#include "../shared.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/threads/parallel.h"
#include "engine/engine.h"
#include "engine/pretrained.h"
#include "error_line.h"
#include "temporary_directory.h"
#include "weights/weights.h"

using namespace finetune;
using finetune::test::contains;

namespace {

struct Model {
  EncoderConfig config;
  std::unique_ptr<WeightSource> source;

  explicit Model(const char* name) : Model(test::shared_path(name)) {}
  explicit Model(const fs::path& directory)
      : config(open_model_config(directory.string(), true).config),
        source(open_weights(directory, config.architecture->names)) {}
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
  return test::error_line(ExitCode::model, [&] { load(model, table, policy); });
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
  Loaded loaded = load(model, table, HeadPolicy::keep_or_new);
  CHECK(loaded.report.head_kept);
  CHECK(!loaded.report.pooler_initialized);
  CHECK(loaded.report.initialized.empty());
  CHECK(loaded.report.unused.known.empty());
  CHECK(loaded.report.unused.unknown.empty());
  CHECK(loaded.report.loaded.size() == table.parameters().size());
  for (const auto& parameter : table.parameters()) {
    CAPTURE(parameter.name);
    CHECK(equals_file(model, table, loaded.arena, parameter.name));
  }
  CHECK(contains(loaded.report.lines.at(1), "is kept"));
  // Gaps between tensors stay zero: the sum over the table equals the sum over the arena.
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
  CHECK(loaded.report.unused.known ==
        std::vector<std::string>{"classifier.bias", "classifier.weight"});
  CHECK(loaded.report.warning == "");
  // The result depends only on the seed, for any number of threads.
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
  Loaded loaded = load(model, table, HeadPolicy::keep_or_new);
  CHECK(!loaded.report.head_kept);
  CHECK(!loaded.report.pooler_initialized);
  CHECK(lists(loaded.report.initialized, "qa_outputs.weight"));
  CHECK(loaded.report.unused.known.size() == 4);
  CHECK(loaded.report.unused.unknown.empty());
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
  CHECK(loaded.report.unused.known.size() == 1);
  CHECK(contains(loaded.report.unused.known.at(0), "position_ids"));
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

TEST_CASE("tensors that no model of this architecture has are warned of, in one short line") {
  if (!test::have_shared(kTiny)) return;
  test::TemporaryDirectory directory;
  Model tiny(kTiny);
  const ParameterTable table(tiny.config, kTwentyFour);
  const Loaded whole = load(tiny, table, HeadPolicy::keep_or_new);
  std::vector<WeightView> views;
  for (const auto& parameter : table.parameters()) {
    views.push_back({parameter.name, parameter.shape, &whole.arena[size_t(parameter.offset)]});
  }
  const float one = 1;
  const std::vector<std::string> known = {"bert.embeddings.position_ids",
                                          "bert.embeddings.token_type_ids", "cls.predictions.bias",
                                          "cls.seq_relationship.weight", "qa_outputs.weight"};
  const std::vector<std::string> unknown = {
      "bert.encoder.layer.0.attention.self.query.lora_A.weight",
      "bert.encoder.layer.99.output.dense.bias", "classifier2.weight", "loss.weight",
      "x" + std::string(5000, 'y') + "\x1b[2J"};
  for (const auto* names : {&known, &unknown}) {
    for (const std::string& name : *names) views.push_back({name, {1}, &one});
    write_safetensors(directory / "model.safetensors", views, DType::f32);
    fs::copy_file(test::shared_path(kTiny) / "config.json", directory / "config.json",
                  fs::copy_options::overwrite_existing);
    const Model model(directory.path());
    const Loaded loaded = load(model, table, HeadPolicy::keep_or_new);
    CHECK(loaded.arena == whole.arena);
    CHECK(loaded.report.unused.known.size() == known.size());
    for (const std::string& name : known) CHECK(lists(loaded.report.unused.known, name));
    CHECK(loaded.report.unused.unknown == (names == &known ? std::vector<std::string>{} : unknown));
    const std::string& warning = loaded.report.warning;
    CHECK(warning.empty() == (names == &known));
    if (warning.empty()) continue;
    CHECK(contains(warning, "model.safetensors holds 5 other tensors (" + unknown[0] + ", "));
    CHECK(warning.size() < directory.path().string().size() + 400);
  }
}

namespace {

// Counts elements of a part that differ from the uncut whole's, including gaps that are not zero.
int64_t differences(const ParameterTable& whole, const std::vector<float>& expected,
                    const ParameterTable& held, std::vector<float> arena) {
  int64_t different = 0;
  for (const Parameter& p : held.parameters()) {
    const float* from = &expected[size_t(whole.find(p.name)->offset)];
    for (int64_t row = 0; row < p.slice.rows; ++row) {
      for (int64_t col = 0; col < p.slice.cols; ++col) {
        float& value = arena[size_t(p.offset + row * p.slice.cols + col)];
        different += value != from[(p.slice.row + row) * p.whole_shape.back() + p.slice.col + col];
        value = 0;
      }
    }
  }
  return different + std::count_if(arena.begin(), arena.end(), [](float x) { return x != 0; });
}

}  // namespace

TEST_CASE("parts are loaded as the whole model is, from files of every kind") {
  for (const char* name :
       {kTiny, "golden/formats/safetensors-no-prefix-no-head", "weights/keras_bert_tf_ckpt"}) {
    if (!test::have_shared(name)) continue;
    CAPTURE(name);
    Model model(name);
    model.config.num_attention_heads = 4;  // not visible in any tensor's shape
    const ParameterTable table(model.config, kTwentyFour);
    const Loaded whole = load(model, table, HeadPolicy::keep_or_new);
    int loaded = 0;
    for (test::PartLayout layout : test::kPartLayouts) {
      if (layout.stages * layout.chunks > model.config.num_hidden_layers) continue;
      CAPTURE(layout.stages);
      CAPTURE(layout.tensor_ranks);
      CAPTURE(layout.tensor_shards);
      for (const ModelPart& part : test::parts_of(model.config, layout)) {
        const ParameterTable held(model.config, kTwentyFour, part);
        std::vector<float> arena(size_t(held.size()));
        const PretrainedReport report =
            load_pretrained(table, held, *model.source, model.config.initializer_range, 1,
                            HeadPolicy::keep_or_new, arena.data());
        CHECK(differences(table, whole.arena, held, arena) == 0);
        CHECK(report.lines == whole.report.lines);
        CHECK(report.warning == whole.report.warning);
        CHECK(report.loaded == whole.report.loaded);
        CHECK(report.initialized == whole.report.initialized);
        ++loaded;
      }
    }
    CHECK(loaded == 17);
  }
}

TEST_CASE("a part of a model is refused for what its own tensors hold, and for any shape") {
  constexpr const char* kNan = "golden/broken/nan-weights";
  constexpr const char* kShape = "golden/broken/shape-not-of-config";
  for (const char* name : {kNan, kShape}) {
    if (!test::have_shared(name)) return;
    Model model(name);
    const ParameterTable table(model.config, kTwentyFour);
    int refused = 0, parts = 0;
    for (const ModelPart& part : test::parts_of(model.config, {2, 1, 1, 1})) {
      const ParameterTable held(model.config, kTwentyFour, part);
      std::vector<float> arena(size_t(held.size()));
      ++parts;
      const std::string fault = test::error_line(ExitCode::model, [&] {
        load_pretrained(table, held, *model.source, 0.02, 1, HeadPolicy::keep_or_new, arena.data());
      });
      refused += !fault.empty();
    }
    CHECK(parts == 2);
    CHECK(refused == (name == kNan ? 1 : 2));
  }
}

TEST_CASE("errors name what a broken model lacks") {
  struct Case {
    const char* name;
    const char* part;
  };
  for (const Case& broken : {Case{"golden/broken/nan-weights", "nan"},
                             Case{"golden/broken/missing-encoder-tensor", "is missing"},
                             Case{"golden/broken/shape-not-of-config", "has shape"}}) {
    if (!test::have_shared(broken.name)) continue;
    CAPTURE(broken.name);
    Model model(broken.name);
    std::string message =
        refusal(model, ParameterTable(model.config, kTwentyFour), HeadPolicy::keep_or_new);
    CAPTURE(message);
    CHECK(contains(message, "model.safetensors: tensor '"));
    CHECK(contains(message, broken.part));
  }
}

TEST_CASE("DistilBERT: --reinit-head replaces both layers of the head, which has no pooler") {
  const char* name = "golden/family/distilbert/classification";
  if (!test::have_shared(name)) return;
  Model model(name);
  ParameterTable table(model.config, Head{HeadKind::sequence, 20});
  Loaded loaded = load(model, table, HeadPolicy::require);
  CHECK(loaded.report.initialized.empty());
  CHECK(loaded.report.unused.unknown.empty());
  loaded = load(model, table, HeadPolicy::renew);
  CHECK(loaded.report.initialized.size() == 4);
  CHECK(!loaded.report.pooler_initialized);
  CHECK(!equals_file(model, table, loaded.arena, "pre_classifier.weight"));
  CHECK(equals_file(model, table, loaded.arena,
                    "distilbert.transformer.layer.1.attention.q_lin.weight"));
}

namespace {

// A model for masked words as a file of the bare encoder, with the tied decoder `decoder` and
// tensors of these names that no model has.
void check_bare_file(const char* name, const std::string& prefix, const std::string& decoder,
                     const std::vector<std::string>& others) {
  if (!test::have_shared(name)) return;
  Model masked(name);
  const Head words{HeadKind::masked, masked.config.vocab_size};
  const Head labels{HeadKind::sequence, 3};
  const ParameterTable of_words(masked.config, words), of_labels(masked.config, labels);
  Loaded loaded = load(masked, of_labels, HeadPolicy::keep_or_new);
  CHECK(!loaded.report.head_kept);
  CHECK(loaded.report.initialized.size() == 4);
  CHECK(loaded.report.unused.known.size() == 5);
  CHECK(loaded.report.warning == "");

  test::TemporaryDirectory directory;
  std::vector<std::vector<float>> values;
  std::vector<WeightView> views;
  for (const WeightInfo& info : masked.source->tensors()) {
    int64_t count = 1;
    for (int64_t dimension : info.shape) count *= dimension;
    values.emplace_back(size_t(count));
    masked.source->read(info, values.back().data());
    const bool in_base = info.name.starts_with(prefix);
    views.push_back(
        {in_base ? info.name.substr(prefix.size()) : info.name, info.shape, values.back().data()});
    if (!info.name.ends_with("word_embeddings.weight")) continue;
    views.push_back({decoder, info.shape, values.back().data()});
    for (const std::string& other : others) views.push_back({other, {1}, values.back().data()});
  }
  write_safetensors(directory / "model.safetensors", views, DType::f32);
  write_file(directory / "config.json", masked.config.source_json);
  Model bare(directory.path());
  loaded = load(bare, of_words, HeadPolicy::keep_or_new);
  CHECK(loaded.report.head_kept);
  CHECK(loaded.report.initialized.empty());
  std::vector<std::string> unread = others;
  unread.push_back(decoder);
  const std::vector<std::string>& found = loaded.report.unused.known;
  CHECK(std::is_permutation(found.begin(), found.end(), unread.begin(), unread.end()));
  CHECK(loaded.report.warning == "");
  CHECK(loaded.arena == load(masked, of_words, HeadPolicy::keep_or_new).arena);
}

}  // namespace

TEST_CASE("files of a bare encoder and of other heads load; tied decoders and poolers are unread") {
  check_bare_file("golden/family/albert/mlm", "albert.", "predictions.decoder.weight",
                  {"sop_classifier.classifier.weight", "embeddings.position_ids"});
  check_bare_file("golden/family/mpnet/mlm", "mpnet.", "lm_head.decoder.weight",
                  {"pooler.dense.weight", "embeddings.position_ids"});
  check_bare_file("golden/family/distilbert/mlm", "distilbert.", "vocab_projector.weight", {});
  check_bare_file("golden/family/electra/mlm", "electra.", "generator_lm_head.weight",
                  {"discriminator_predictions.dense.weight", "embeddings.position_ids"});
  check_bare_file("golden/family/roberta/mlm", "roberta.", "lm_head.decoder.weight",
                  {"pooler.dense.weight", "pooler.dense.bias", "embeddings.position_ids"});
}
