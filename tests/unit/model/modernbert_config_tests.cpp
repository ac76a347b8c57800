// ModernBERT's config.json in both of its forms, and variants that are refused by name.
#include "config_errors.h"

namespace finetune::test {
TEST_CASE("ModernBERT's layers and rotations are read in both forms of its configuration") {
  EncoderConfig c = parse_config(R"({"model_type": "modernbert"})", "c");
  CHECK(c.architecture->class_prefix == "ModernBert");
  CHECK(c.vocab_size == 50368);
  CHECK(c.num_hidden_layers == 22);
  CHECK(c.intermediate_size == 1152);
  CHECK(c.inner_rows() == 2304);
  CHECK(c.max_length() == 8192);
  CHECK(c.position_rows() == 0);
  CHECK(c.pad_token_id == 50283);
  CHECK(c.layer_norm_eps == 1e-5);
  CHECK(c.rotary.theta == 160000);
  CHECK(c.rotary.local_theta == 10000);
  CHECK(c.rotary.window == 64);
  CHECK_FALSE(c.rotary.is_local(0));
  CHECK(c.rotary.is_local(1));
  CHECK(c.rotary.is_local(2));
  CHECK_FALSE(c.rotary.is_local(3));
  CHECK_FALSE(c.head.mean);
  CHECK(c.reads_first_only(HeadKind::sequence));
  CHECK_FALSE(c.layer.norm_bias);
  CHECK(c.head_dropout(HeadKind::sequence) == 0);
  const std::string sizes = R"({"model_type": "modernbert", "num_hidden_layers": 2, )";
  c = parse_config(sizes + R"("local_rope_theta": null, "global_rope_theta": 500.5,
                              "global_attn_every_n_layers": 1, "local_attention": 11,
                              "classifier_pooling": "mean", "norm_bias": true, "mlp_dropout": 0.2})",
                   "c");
  CHECK(c.rotary.local_theta == 500.5);
  CHECK_FALSE(c.rotary.is_local(1));
  CHECK(c.rotary.window == 5);
  CHECK_FALSE(c.reads_first_only(HeadKind::sequence));
  CHECK(c.layer.norm_bias);
  CHECK(c.gate_dropout == 0.2);
  c = parse_config(sizes + R"("layer_types": ["sliding_attention", "full_attention"],
                              "rope_parameters": {"full_attention": {"rope_theta": 7.0},
                                "sliding_attention": {"rope_type": "default", "rope_theta": 9}}})",
                   "c");
  CHECK(c.rotary.is_local(0));
  CHECK_FALSE(c.rotary.is_local(1));
  CHECK(c.rotary.theta == 7);
  CHECK(c.rotary.local_theta == 9);
  c = parse_config(sizes + R"("local_attention": 16, "sliding_window": 4})", "c");
  CHECK(c.rotary.window == 4);
  check_refused(sizes + R"("layer_types": ["full_attention"]})", "layer_types has 1 entries");
  check_refused(sizes + R"("layer_types": ["full_attention", "chunked"]})", "has 'chunked'");
  check_refused(sizes + R"("rope_parameters": {"rope_theta": 50, "rope_type": "default"}})",
                "rope_parameters has rope_type 'default'");
  check_refused(sizes + R"("rope_parameters": {"full_attention": {"rope_type": "yarn"}}})",
                "rope_type is 'yarn'; only 'default'");
  check_refused(sizes + R"("rope_scaling": {"type": "linear", "factor": 2}})",
                "rope_scaling has 'linear'");
  check_refused(sizes + R"("classifier_pooling": "max"})", "classifier_pooling is 'max'");
  check_refused(sizes + R"("norm_bias": 1})", "norm_bias is 1, not true or false");
  check_refused(sizes + R"("hidden_size": 36, "num_attention_heads": 12})", "have 3 columns");
  check_refused(sizes + R"("vocab_size": 100})", "pad_token_id 50283 (the default)");
}

}  // namespace finetune::test
