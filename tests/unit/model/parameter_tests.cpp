// The parameter table: order, offsets, counts and initial values.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "../contains.h"
#include "fixture.h"

namespace finetune::test {

TEST_CASE("parameters lie in the order of the backward pass") {
  ParameterTable table(small_config(2), {HeadKind::sequence, 5});
  std::vector<std::string> names;
  for (const Parameter& p : table.parameters()) names.push_back(p.name);
  std::vector<std::string> expected = {"classifier.weight", "classifier.bias",
                                       "bert.pooler.dense.weight", "bert.pooler.dense.bias"};
  for (const char* layer : {"1", "0"}) {
    for (const char* part :
         {"output.LayerNorm.weight", "output.LayerNorm.bias", "attention.output.LayerNorm.weight",
          "attention.output.LayerNorm.bias", "attention.self.query.weight",
          "attention.self.key.weight", "attention.self.value.weight", "attention.self.query.bias",
          "attention.self.key.bias", "attention.self.value.bias", "intermediate.dense.weight",
          "intermediate.dense.bias", "attention.output.dense.weight", "attention.output.dense.bias",
          "output.dense.weight", "output.dense.bias"}) {
      expected.push_back(std::string("bert.encoder.layer.") + layer + "." + part);
    }
  }
  for (const char* part : {"LayerNorm.weight", "LayerNorm.bias", "token_type_embeddings.weight",
                           "position_embeddings.weight", "word_embeddings.weight"}) {
    expected.push_back(std::string("bert.embeddings.") + part);
  }
  CHECK(names == expected);
}

TEST_CASE("offsets do not overlap, are aligned, and query, key, value are joined") {
  for (auto [hidden, products] :
       {std::pair(7, DType::f32), std::pair(12, DType::f32), std::pair(64, DType::f32),
        std::pair(12, DType::bf16), std::pair(7, DType::bf16)}) {
    EncoderConfig config = small_config(2);
    config.hidden_size = hidden;
    config.num_attention_heads = 1;
    const ModelPart whole = ModelPart::whole(config);
    ParameterTable table(config, {HeadKind::token, 2}, whole, products);
    int64_t end = 0;
    const Parameter* last = nullptr;
    for (const Parameter& p : table.parameters()) {
      INFO(p.name);
      bool joined = test::contains(p.name, "self.key") || test::contains(p.name, "self.value");
      // Norm blocks restart at layers, behind a layer's norms, and at the word embedding.
      bool begins = !last || p.layer != last->layer || p.shard != last->shard ||
                    p.role == Role::word_embeddings;
      CHECK(p.offset >= end);
      CHECK(p.offset - end < (begins ? kNormBlock : 16));
      if (begins) CHECK(p.offset % kNormBlock == 0);
      last = &p;
      CHECK(p.whole());
      if (joined) CHECK(p.offset == end);
      if (!joined) CHECK(p.offset % 16 == 0);
      const bool is_rounded = is_product(p.role) && p.part == ParameterPart::weight &&
                              p.size() % 2 == 0 && products == DType::bf16;
      CHECK(p.dtype == (is_rounded ? DType::bf16 : DType::f32));
      CHECK(table.view(nullptr, p).dtype == p.dtype);
      end = p.offset + p.size() / (is_rounded ? 2 : 1);
    }
    CHECK(table.size() >= end);
  }
}

TEST_CASE("count equals Hugging Face's, layers and decay follow the names") {
  // sum(p.numel()) of BertForSequenceClassification and BertForQuestionAnswering,
  // bert-base-uncased.
  ParameterTable table(named_shape("base"), {HeadKind::sequence, 2});
  CHECK(table.count() == 109483778);
  CHECK(ParameterTable(named_shape("base"), {HeadKind::token, 2}).count() == 108893186);
  for (const Parameter& p : table.parameters()) {
    INFO(p.name);
    bool norm = test::contains(p.name, "LayerNorm");
    bool bias = p.name.ends_with(".bias");
    CHECK(p.decay == (!norm && !bias));
    CHECK(p.init == (bias   ? Parameter::Init::zeros
                     : norm ? Parameter::Init::ones
                            : Parameter::Init::normal));
    CHECK(p.head == (p.layer == 13));
  }
  CHECK(table.find("bert.embeddings.word_embeddings.weight")->decay);
  CHECK(table.find("bert.embeddings.word_embeddings.weight")->layer == 0);
  CHECK(table.find("bert.encoder.layer.0.output.dense.weight")->layer == 1);
  CHECK(table.find("bert.encoder.layer.11.output.dense.weight")->layer == 12);
  CHECK(table.find("bert.pooler.dense.weight")->layer == 13);
  CHECK(table.find("nothing") == nullptr);
}

TEST_CASE("initial values: distribution, zeros and ones, the padding row") {
  EncoderConfig config = small_config(1);
  config.hidden_size = 96;
  config.vocab_size = 1001;
  config.pad_token_id = 3;
  ParameterTable table(config, {HeadKind::sequence, 2});
  std::vector<float> arena(size_t(table.size()), 9.0f);
  for (const Parameter& p : table.parameters()) initialize(table, p, 0.02, 42, arena.data());
  const Parameter& word = *table.find("bert.embeddings.word_embeddings.weight");
  double sum = 0, squares = 0, fourth = 0, largest = 0;
  for (int64_t i = 0; i < word.size(); ++i) {
    double z = arena[size_t(word.offset + i)] / 0.02;
    if (i / 96 == 3) {
      CHECK(z == 0);
      continue;
    }
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
    largest = std::max(largest, std::abs(z));
  }
  // Standard errors over n values: mean 1/sqrt(n), variance sqrt(2/n), fourth moment sqrt(96/n).
  const double n = 1000 * 96;
  CHECK(std::abs(sum / n) < 5 / std::sqrt(n));
  CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2 / n));
  CHECK(std::abs(fourth / n - 3) < 5 * std::sqrt(96 / n));
  CHECK(largest > 3.5);
  CHECK(largest < 6);
  for (const Parameter& p : table.parameters()) {
    if (p.init == Parameter::Init::normal) continue;
    INFO(p.name);
    float value = p.init == Parameter::Init::ones ? 1.0f : 0.0f;
    auto begin = arena.begin() + p.offset;
    CHECK(std::all_of(begin, begin + p.size(), [&](float x) { return x == value; }));
  }
  // Positions and types have no padding row.
  for (const char* name : {"bert.embeddings.position_embeddings.weight",
                           "bert.embeddings.token_type_embeddings.weight"}) {
    auto begin = arena.begin() + table.find(name)->offset;
    CHECK(std::none_of(begin, begin + table.find(name)->size(), [](float x) { return x == 0; }));
  }
}

TEST_CASE("initial values: RoBERTa's positions have a padding row") {
  const EncoderConfig config = parse_config(R"({"model_type": "roberta", "vocab_size": 60,
      "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
      "max_position_embeddings": 20, "pad_token_id": 3})",
                                            "config.json");
  ParameterTable table(config, {HeadKind::sequence, 2});
  std::vector<float> arena(size_t(table.size()), 9.0f);
  const Parameter& positions = *table.find(Role::position_embeddings, ParameterPart::weight);
  initialize(table, positions, 0.02, 42, arena.data());
  for (int64_t i = 0; i < positions.size(); ++i) {
    CHECK((arena[size_t(positions.offset + i)] == 0) == (i / 32 == 3));
  }
}

TEST_CASE("initial values depend on seed and name, not on the table") {
  const std::string name = "bert.encoder.layer.0.output.dense.weight";
  auto values = [&](int64_t layers, Head head, uint64_t seed, const std::string& which) {
    ParameterTable table(small_config(layers), head);
    std::vector<float> arena(size_t(table.size()));
    const Parameter& p = *table.find(which);
    initialize(table, p, 0.02, seed, arena.data());
    return std::vector<float>(arena.begin() + p.offset, arena.begin() + p.offset + p.size());
  };
  std::vector<float> first = values(1, {HeadKind::sequence, 2}, 42, name);
  CHECK(values(3, {HeadKind::token, 2}, 42, name) == first);
  CHECK(values(1, {HeadKind::sequence, 2}, 43, name) != first);
  CHECK(values(2, {HeadKind::sequence, 2}, 42, "bert.encoder.layer.1.output.dense.weight") !=
        first);
}

}  // namespace finetune::test
