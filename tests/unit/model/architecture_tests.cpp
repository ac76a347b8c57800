// Architectures: names and roles of parameters, first positions, models without type embeddings.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../contains.h"
#include "core/error.h"
#include "fixture.h"
#include "op_case.h"

namespace finetune::test {
namespace {

// The values of `from` at the places of `table`: what a parameter of the same name has, in its last
// rows; zeros elsewhere.
std::vector<float> moved(const ParameterTable& from, const std::vector<float>& values,
                         const ParameterTable& table) {
  std::vector<float> out(size_t(table.size()), 0.0f);
  for (const Parameter& p : table.parameters()) {
    const Parameter& source = *from.find(p.name);
    const int64_t count = std::min(p.size(), source.size());
    auto begin = values.begin() + source.offset + source.size() - count;
    std::copy(begin, begin + count, out.begin() + p.offset + p.size() - count);
  }
  return out;
}

// Of a backward pass that writes over what was there. `of_logits`: gets the logits.
std::vector<float> written_gradients(Backend& backend, const EncoderConfig& config,
                                     const ParameterTable& table, const std::vector<float>& weights,
                                     const PackedBatch& batch,
                                     const std::vector<float>& coefficients,
                                     const EmbeddingBlock& uploaded = {},
                                     std::vector<float>* of_logits = nullptr) {
  std::vector<float> before(size_t(table.size()), 9.0f);
  const Parameter& words = *table.find(Role::word_embeddings, ParameterPart::weight);
  std::fill_n(before.begin() + words.offset, words.size(), 0.0f);  // which is accumulated
  Arena arena(backend, weights), gradients(backend, before);
  DeviceBatch device(backend, batch.tokens(), batch.sequences());
  device.upload(batch, 1, uploaded);
  Encoder encoder(backend, config, table);
  encoder.reserve(batch.tokens(), batch.sequences(), true);
  const Tensor logits = encoder.forward(device, arena.data(), &kDropout, true);
  if (of_logits) *of_logits = download(backend, logits);
  Arena dlogits(backend, coefficients);
  encoder.backward(device, arena.data(), gradients.data(),
                   matrix(dlogits.data(), logits.rows, logits.cols), &kDropout, 0, false);
  std::vector<float> all = gradients.values(), of_parameters(all.size(), 0.0f);
  for (const Parameter& p : table.parameters()) {
    std::copy_n(all.begin() + p.offset, p.size(), of_parameters.begin() + p.offset);
  }
  return of_parameters;
}

// small_config with the blocks that the architecture's own defaults name.
EncoderConfig small_config_of(const Architecture& architecture) {
  const std::string json = concat(R"({"model_type": ")", architecture.model_type, R"("})");
  EncoderConfig config = parse_config(json, "config.json");
  const EncoderConfig small = small_config(2);
  config.vocab_size = small.vocab_size;
  config.hidden_size = small.hidden_size;
  config.num_hidden_layers = small.num_hidden_layers;
  config.num_attention_heads = small.num_attention_heads;
  config.intermediate_size = small.intermediate_size;
  if (config.has_projection()) config.embeddings.narrow_size = 8;
  config.pad_token_id = std::min<int64_t>(config.pad_token_id, config.vocab_size - 1);
  if (!config.rotary.local
           .empty()) {  // a local layer last, whose window is narrower than the texts
    config.rotary.local = {false, true};
    config.rotary.window = 3;
  }
  config.max_position_embeddings = small.max_position_embeddings + config.embeddings.first_position;
  return config;
}

}  // namespace

TEST_CASE("every parameter is found by its role, part and layer") {
  for (Head head : kHeads) {
    ParameterTable table(small_config(3), head);
    for (const Parameter& p : table.parameters()) {
      INFO(p.name);
      CHECK(table.find(p.role, p.part, p.layer - 1) == &p);
      CHECK(p.name.ends_with(p.part == ParameterPart::bias ? ".bias" : ".weight"));
      CHECK(is_norm(p.role) == test::contains(p.name, "LayerNorm"));
    }
    CHECK(table.find(Role::query, ParameterPart::weight, 2)->name ==
          "bert.encoder.layer.2.attention.self.query.weight");
    CHECK(table.find(Role::query, ParameterPart::weight, 3) == nullptr);
    CHECK(table.find(Role::word_embeddings, ParameterPart::bias) == nullptr);
    const bool pools = head.kind == HeadKind::sequence;
    CHECK((table.find(Role::pooler, ParameterPart::bias) != nullptr) == pools);
  }
}

TEST_CASE("each architecture is found by its model_type and has what the model computes with") {
  CHECK(&default_architecture() == architecture_named("bert"));
  CHECK(architecture_named("") == nullptr);
  for (const Architecture& architecture : all_architectures()) {
    INFO(std::string(architecture.model_type));
    CHECK(architecture_named(architecture.model_type) == &architecture);
    for (int role = 0; role <= int(Role::masked_decoder); ++role) {
      const bool named =
          std::any_of(architecture.modules.begin(), architecture.modules.end(),
                      [&](const Module& module) { return module.role == Role(role); });
      const Role optional[] = {Role::type_embeddings,      Role::position_embeddings,
                               Role::embedding_projection, Role::gate,
                               Role::final_norm,           Role::head_norm,
                               Role::position_bias,        Role::relative_norm,
                               Role::relative_embeddings,  Role::position_key,
                               Role::position_query,       Role::convolution,
                               Role::convolution_norm};
      if (!named && std::count(std::begin(optional), std::end(optional), Role(role))) continue;
      REQUIRE(named);
      const bool numbered =
          architecture.module_of(Role(role), {7}) != architecture.module_of(Role(role), {8});
      CHECK(numbered == is_of_layer(Role(role)));
      const bool in_base =
          architecture.module_of(Role(role)).starts_with(architecture.names.base_prefix);
      if (!is_of_head(Role(role))) CHECK(in_base);
    }
  }
}

// Tests that any new row of the table must pass.
TEST_CASE("a step against the gradient lowers the loss of every architecture") {
  auto backend = make_reference_backend();
  for (const Architecture& architecture : all_architectures()) {
    for (Head head : kHeads) {
      INFO(std::string(architecture.model_type), ", ", text(head), " head");
      const EncoderConfig config = small_config_of(architecture);
      const ParameterTable table(config, head);
      std::vector<float> weights = random_weights(table, 0.3);
      const PackedBatch batch = pack(random_sequences(config, {int(config.max_length()), 3}));
      const std::vector<float> coefficients = logit_coefficients(batch, head);
      auto pass = [&] {
        return run_pass(*backend, config, table, weights, batch, coefficients, {&kDropout});
      };
      auto loss = [&](const PassResult& of) {
        return std::inner_product(coefficients.begin(), coefficients.end(), of.logits.begin(), 0.0);
      };
      const PassResult before = pass();
      const double squares = std::inner_product(before.gradients.begin(), before.gradients.end(),
                                                before.gradients.begin(), 0.0);
      const double step = 1e-3 / std::sqrt(squares);
      for (size_t i = 0; i < weights.size(); ++i) {
        weights[i] -= float(step * before.gradients[i]);
      }
      const double wanted = step * squares;  // expected change of the loss, to first order
      CHECK(std::abs(loss(before) - loss(pass()) - wanted) <= 0.05 * wanted);
      const Parameter* positions = table.find(Role::position_embeddings, ParameterPart::weight);
      for (int64_t row = 0; positions && row < positions->shape[0]; ++row) {
        auto begin = before.gradients.begin() + positions->offset + row * config.embedding_size();
        const bool trained =
            std::any_of(begin, begin + config.embedding_size(), [](float g) { return g != 0; });
        CHECK(trained == (row >= config.embeddings.first_position));
      }
    }
  }
}

TEST_CASE("weights of products held in bf16 give the bits of f32, in every architecture") {
  auto backend = make_cpu_backend(DType::bf16);
  for (const Architecture& architecture : all_architectures()) {
    EncoderConfig config = small_config_of(architecture);
    if (architecture.model_type == "deberta-v2") {  // which is not its default
      config.relative = {.span = 8, .farthest = 8, .of_queries = true, .of_keys = true};
      config.layer.score_terms = 3;
    }
    for (Head head : {kHeads[0], kHeads[1], Head{HeadKind::masked, config.vocab_size}}) {
      INFO(std::string(architecture.model_type), ", ", text(head), " head");
      const ParameterTable table(config, head);
      const ParameterTable rounded(config, head, ModelPart::whole(config), backend->weight_type());
      const std::vector<float> weights = random_weights(table, 0.3);
      CHECK(std::any_of(rounded.parameters().begin(), rounded.parameters().end(),
                        [](const Parameter& p) { return p.dtype == DType::bf16; }));
      PackedBatch batch = pack(random_sequences(config, {int(config.max_length()), 3}));
      if (head.kind == HeadKind::masked) {
        batch.scored = {1, 2};
        batch.targets = {0, 0};
      }
      const auto logits_of = [&](const ParameterTable& of, const std::vector<float>& values) {
        DeviceBatch device(*backend, batch.tokens(), batch.sequences());
        device.upload(batch, 1, config.embeddings);
        Arena arena(*backend, values);
        Encoder encoder(*backend, config, of);
        encoder.reserve(batch.tokens(), batch.sequences(), false);
        return download(*backend, encoder.forward(device, arena.data(), nullptr, false));
      };
      CHECK(logits_of(rounded, rounded_products(table, weights, rounded)) ==
            logits_of(table, weights));
    }
  }
}

// On a GPU blocks of attention, masks and tables of positions are made for the longest sequence,
// which is rounded up (data/packing.h).
TEST_CASE("every architecture has the same bits, whatever the longest sequence is rounded to") {
  for (const BackendFactory& factory : backends_under_test()) {
    if (factory.device != Device::gpu) continue;
    const auto backend = factory.make();
    if (!backend) continue;
    for (const Architecture& architecture : all_architectures()) {
      EncoderConfig config = small_config_of(architecture);
      config.hidden_size = 64;  // heads for tensor cores in bf16
      config.num_attention_heads = 2;
      config.max_position_embeddings += 64;  // as many as the rounded length, at least
      for (const auto& [head, longest] : {std::pair{kHeads[0], 16}, {kHeads[1], 32}}) {
        INFO(std::string(factory.name), ", ", std::string(architecture.model_type), ", ", longest);
        const ParameterTable table(config, head);
        const std::vector<float> weights = random_weights(table, 0.3);
        PackedBatch batch = pack(random_sequences(config, {9, longest, 2, 14, 16, 11, 15}));
        const std::vector<float> coefficients = logit_coefficients(batch, head);
        std::vector<float> logits[2], gradients[2];
        for (const int i : {0, 1}) {
          batch.max_length = i == 0 ? longest : 64;
          gradients[i] = written_gradients(*backend, config, table, weights, batch, coefficients,
                                           config.embeddings, &logits[i]);
        }
        CHECK(logits[0] == logits[1]);
        CHECK(gradients[0] == gradients[1]);
      }
    }
  }
}

TEST_CASE("positions that begin at a later row use and train the rows from there on") {
  for (const NamedBackend& named : model_backends()) {
    for (Head head : kHeads) {
      for (const std::vector<int>& lengths : {std::vector<int>{1}, {7}, {5, 24, 2}}) {
        INFO(named.name, ", ", text(head), " head, ", lengths.size(), " sequences of ", lengths[0]);
        EncoderConfig config = small_config(2), later = config;
        later.embeddings.first_position = 2;
        later.max_position_embeddings = config.max_position_embeddings + 2;
        CHECK(later.max_length() == config.max_length());
        const ParameterTable table(config, head), later_table(later, head);
        const std::vector<float> weights = random_weights(table, 0.3);
        const std::vector<float> later_weights = moved(table, weights, later_table);
        const PackedBatch batch = pack(random_sequences(config, lengths));
        const std::vector<float> coefficients = logit_coefficients(batch, head);
        Backend& backend = *named.backend;
        const PassResult a =
            run_pass(backend, config, table, weights, batch, coefficients, {&kDropout});
        const PassResult b =
            run_pass(backend, later, later_table, later_weights, batch, coefficients, {&kDropout});
        CHECK(a.logits == b.logits);
        // Rows before the first position have no gradient.
        CHECK(moved(table, a.gradients, later_table) == b.gradients);
        CHECK(moved(table, written_gradients(backend, config, table, weights, batch, coefficients),
                    later_table) ==
              written_gradients(backend, later, later_table, later_weights, batch, coefficients));
      }
    }
  }
}

TEST_CASE("a padding token in a text takes the row before the first position, and trains no row") {
  constexpr int32_t kPad = 5;
  for (const NamedBackend& named : model_backends()) {
    for (Head head : kHeads) {
      INFO(named.name, ", ", text(head), " head");
      EncoderConfig config = small_config(2);
      config.embeddings = {.first_position = 3, .uncounted_id = kPad, .pair_types = false};
      config.pad_token_id = kPad;
      EncoderConfig plain = config;  // whose batch says positions and types itself
      plain.pad_token_id = -1;
      plain.embeddings = {.first_position = 2};
      const ParameterTable table(config, head);
      const std::vector<float> weights = random_weights(table, 0.3);
      std::vector<Sequence> sequences = random_sequences(config, {7, 4});
      for (Sequence& sequence : sequences) {
        for (int32_t& id : sequence.ids) id += id == kPad;
        sequence.ids[2] = kPad;
      }
      const PackedBatch batch = pack(sequences);
      const std::vector<float> coefficients = logit_coefficients(batch, head);
      PackedBatch counted = batch;
      counted.positions = {1, 2, 0, 3, 4, 5, 6, 1, 2, 0, 3};
      counted.types.assign(counted.types.size(), 0);
      Backend& backend = *named.backend;
      std::vector<float> logits, expected_logits;
      const std::vector<float> gradients = written_gradients(
          backend, config, table, weights, batch, coefficients, config.embeddings, &logits);
      std::vector<float> expected = written_gradients(backend, plain, table, weights, counted,
                                                      coefficients, {}, &expected_logits);
      CHECK(logits == expected_logits);
      for (const auto& [role, number] :
           {std::pair{Role::position_embeddings, 2}, {Role::word_embeddings, int(kPad)}}) {
        const Parameter& rows = *table.find(role, ParameterPart::weight);
        const auto row = expected.begin() + rows.offset + number * config.hidden_size;
        CHECK(std::any_of(row, row + config.hidden_size, [](float g) { return g != 0; }));
        std::fill_n(row, config.hidden_size, 0.0f);
      }
      CHECK(gradients == expected);
    }
  }
}

TEST_CASE("a model without type embeddings is one whose types add nothing") {
  for (const NamedBackend& named : model_backends()) {
    for (Head head : kHeads) {
      INFO(named.name, ", ", text(head), " head");
      EncoderConfig config = small_config(2), untyped = config;
      untyped.type_vocab_size = 0;
      const ParameterTable table(config, head), untyped_table(untyped, head);
      CHECK(untyped_table.find(Role::type_embeddings, ParameterPart::weight) == nullptr);
      std::vector<float> weights = random_weights(table, 0.3);
      const Parameter& types = *table.find(Role::type_embeddings, ParameterPart::weight);
      std::fill_n(weights.begin() + types.offset, types.size(), 0.0f);
      const PackedBatch batch = pack(random_sequences(config, {7, 1, 24}));
      const std::vector<float> coefficients = logit_coefficients(batch, head);
      Backend& backend = *named.backend;
      const PassResult a =
          run_pass(backend, config, table, weights, batch, coefficients, {&kDropout});
      const std::vector<float> untyped_weights = moved(table, weights, untyped_table);
      const PassResult b = run_pass(backend, untyped, untyped_table, untyped_weights, batch,
                                    coefficients, {&kDropout});
      CHECK(a.logits == b.logits);
      CHECK(moved(table, a.gradients, untyped_table) == b.gradients);
      CHECK(moved(table, written_gradients(backend, config, table, weights, batch, coefficients),
                  untyped_table) == written_gradients(backend, untyped, untyped_table,
                                                      untyped_weights, batch, coefficients));
    }
  }
}

}  // namespace finetune::test
