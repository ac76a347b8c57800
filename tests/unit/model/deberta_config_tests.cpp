// DeBERTa's config.json, variants that are refused by name, and rows and buckets by distance.
#include <simdjson.h>

#include <cstdio>

#include "../shared.h"
#include "config_errors.h"

namespace finetune::test {

TEST_CASE("DeBERTa's relative positions, and what cannot be loaded of them") {
  const auto with = [](std::string_view more) {
    return concat(R"({"model_type": "deberta-v2", "relative_attention": true, )", more, "}");
  };
  EncoderConfig c = parse_config(R"({"model_type": "deberta-v2"})", "c");
  CHECK(c.architecture->class_prefix == "DebertaV2");
  CHECK(c.type_vocab_size == 0);
  CHECK(c.position_rows() == 512);
  CHECK_FALSE(c.relative.on());
  CHECK(c.layer_norm_eps == 1e-7);
  CHECK(c.layer.score_terms == 1);
  // The scale of plain attention counts them as well.
  c = parse_config(R"({"model_type": "deberta-v2", "pos_att_type": ["p2c", "c2p"]})", "c");
  CHECK_FALSE(c.relative.on());
  CHECK(c.layer.score_terms == 3);
  CHECK(c.architecture->module_of(Role::masked_decoder) == "cls.predictions");
  // v3, as published.
  c = parse_config(
      with(R"("pos_att_type": "p2c|c2p", "position_buckets": 256, "share_att_key": true,
                           "norm_rel_ebd": "layer_norm", "max_relative_positions": -1,
                           "position_biased_input": false, "legacy": false)"),
      "c");
  CHECK((c.relative.of_queries && c.relative.of_keys && c.relative.norm));
  CHECK_FALSE(c.relative.own_weights);
  CHECK(c.relative.rows() == 512);
  CHECK(c.relative.farthest == 512);
  CHECK(c.position_rows() == 0);
  CHECK(c.max_length() == 2048);
  CHECK_FALSE(c.embeddings.pair_types);
  CHECK(c.architecture->module_of(Role::masked_decoder) == "lm_predictions.lm_head");
  c = parse_config(with(R"("pos_att_type": ["c2p"], "max_relative_positions": 24,
                           "type_vocab_size": 2, "cls_dropout": 0.3, "pooler_dropout": 0.2)"),
                   "c");
  CHECK(c.relative.own_weights);
  CHECK_FALSE((c.relative.of_keys || c.relative.norm));
  CHECK(c.relative.rows() == 48);
  CHECK(c.relative.row_of(30) == 47);
  CHECK(c.relative.row_of(-3) == 21);
  CHECK(c.head_dropout(HeadKind::sequence) == 0.3);
  CHECK(c.head_input_dropout == 0.2);
  check_refused(with(R"("pos_att_type": null)"), "pos_att_type names neither 'c2p' nor 'p2c'");
  check_refused(with(R"("pos_att_type": "p2p")"), "pos_att_type has 'p2p'");
  c = parse_config(with(R"("pos_att_type": "c2p|c2p")"), "c");
  CHECK((c.relative.of_queries && !c.relative.of_keys && c.layer.score_terms == 2));
  check_refused(R"({"model_type": "deberta-v2", "norm_rel_ebd": "layer_norm"})",
                "norm_rel_ebd has 'layer_norm', but relative_attention is false");
  check_refused(with(R"("pos_att_type": "c2p", "norm_rel_ebd": "batch_norm")"), "'batch_norm'");
  check_refused(with(R"("pos_att_type": "c2p", "position_buckets": 1024)"),
                "position_buckets 1024 needs max_relative_positions 514 or more; the distances "
                "reach 512");
  check_refused(with(R"("pos_att_type": "c2p", "position_buckets": 3)"),
                "position_buckets is 3; only 4 or more, or -1 for none");
  c = parse_config(R"({"model_type": "deberta-v2", "conv_kernel_size": 3, "conv_act": "gelu"})",
                   "c");
  CHECK(c.convolution.taps == 3);
  CHECK(c.convolution.activation == Activation::gelu);
  check_refused(R"({"model_type": "deberta-v2", "conv_kernel_size": 4})", "conv_kernel_size 4");
  check_refused(R"({"model_type": "deberta-v2", "conv_kernel_size": 3, "conv_groups": 2})",
                "conv_groups is 2; only 1 can be loaded");
  check_refused(R"({"model_type": "deberta-v2", "embedding_size": 128})",
                "embedding_size is 128; only 1536 can be loaded");
}

TEST_CASE("golden DeBERTa: rows of distances") {
  const char* name = "golden/family/tables/deberta-log-buckets.json";
  if (!have_shared(name)) return;
  simdjson::dom::parser parser;
  const simdjson::dom::object tables = parser.load(shared_path(name).string()).get_object();
  const int64_t first = tables["first"].get_int64();
  size_t seen = 0;
  for (auto [title, table] : tables) {
    RelativeBlock relative;
    if (std::sscanf(std::string(title).c_str(), "buckets %ld, max %ld", &relative.buckets,
                    &relative.farthest) != 2)
      continue;
    ++seen;
    relative.span = 4096;  // so that no row is clamped
    int64_t distance = first;
    for (int64_t bucket : table.get_array()) {
      INFO(title, ", distance ", distance);
      CHECK(relative.row_of(distance++) - relative.span == bucket);
    }
    relative.span = relative.buckets;
    CHECK(relative.row_of(100000) == 2 * relative.span - 1);
    CHECK(relative.row_of(-100000) == 0);
  }
  CHECK(seen == 7);
}

TEST_CASE("golden MPNet: buckets of distances") {
  const char* name = "golden/family/tables/mpnet-buckets.json";
  if (!have_shared(name)) return;
  simdjson::dom::parser parser;
  const simdjson::dom::element table = parser.load(shared_path(name).string());
  int64_t distance = table["first"].get_int64();
  for (int64_t bucket : table["buckets"].get_array()) {
    INFO("distance ", distance);
    CHECK(position_bucket(distance++) == bucket);
  }
  CHECK(distance == table["last"].get_int64().value() + 1);
}

}  // namespace finetune::test
