// ModernBERT's and nomic_bert's config.json in their forms, and variants that are refused by name.
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
                "full_attention has rope_type 'yarn'; only 'default'");
  check_refused(sizes + R"("rope_scaling": {"type": "linear", "factor": 2}})",
                "rope_scaling has 'linear'");
  check_refused(sizes + R"("classifier_pooling": "max"})", "classifier_pooling is 'max'");
  check_refused(sizes + R"("norm_bias": 1})", "norm_bias is 1, not true or false");
  check_refused(sizes + R"("hidden_size": 36, "num_attention_heads": 12})", "have 3 columns");
  check_refused(sizes + R"("vocab_size": 100})", "pad_token_id 50283 (the default)");
}

TEST_CASE("nomic_bert is read in the published form of its configuration and in transformers'") {
  EncoderConfig c = parse_config(R"({"model_type": "nomic_bert"})", "c");
  CHECK(c.architecture->class_prefix == "NomicBert");
  CHECK(c.vocab_size == 30528);
  CHECK(c.inner_rows() == 2 * 3072);
  CHECK(c.max_length() == 2048);
  CHECK(c.position_rows() == 0);
  CHECK(c.type_vocab_size == 2);
  CHECK(c.rotary.theta == 1000);
  CHECK_FALSE(c.rotary.is_local(0));
  CHECK(c.hidden_act == Activation::silu);
  CHECK(c.layer_norm_eps == 1e-12);
  CHECK_FALSE(c.layer.attention_bias);
  CHECK_FALSE(c.layer.inner_bias);
  CHECK(c.layer.norm_bias);
  CHECK_FALSE(c.layer.norm_before);
  CHECK(c.head_dropout(HeadKind::sequence) == 0);
  c = parse_config(R"({"model_type": "nomic_bert", "n_embd": 64, "n_head": 2, "n_inner": 96,
                       "n_layer": 3, "n_positions": 8192, "layer_norm_epsilon": 1e-6,
                       "rotary_emb_base": 50.5, "rotary_emb_fraction": 1.0, "resid_pdrop": 0.2,
                       "embd_pdrop": 0.2, "attn_pdrop": 0.3, "rotary_scaling_factor": null,
                       "activation_function": "swiglu", "prenorm": false})",
                   "c");
  CHECK(c.hidden_size == 64);
  CHECK(c.head_size() == 32);
  CHECK(c.intermediate_size == 96);
  CHECK(c.num_hidden_layers == 3);
  CHECK(c.max_length() == 8192);
  CHECK(c.layer_norm_eps == 1e-6);
  CHECK(c.rotary.theta == 50.5);
  CHECK(c.hidden_dropout_prob == 0.2);
  CHECK(c.attention_probs_dropout_prob == 0.3);
  CHECK(c.head_dropout(HeadKind::sequence) == 0.2);
  c = parse_config(R"({"model_type": "nomic_bert", "n_embd": 64, "n_head": 2, "n_inner": null})",
                   "c");
  CHECK(c.intermediate_size == 256);
  const std::string begin = R"({"model_type": "nomic_bert", )";
  c = parse_config(begin + R"("rope_parameters": {"rope_type": "default", "rope_theta": 7},
                              "hidden_size": 48, "num_attention_heads": 4, "head_dim": 12})",
                   "c");
  CHECK(c.rotary.theta == 7);
  check_refused(begin + R"("prenorm": true})", "prenorm is true; only false");
  check_refused(begin + R"("qkv_proj_bias": true})", "qkv_proj_bias is true");
  check_refused(begin + R"("causal": true})", "causal is true");
  check_refused(begin + R"("rotary_emb_fraction": 0.5})", "rotary_emb_fraction is 0.5; only 1");
  check_refused(begin + R"("rotary_scaling_factor": 2})", "rotary_scaling_factor is 2; only null");
  check_refused(begin + R"("activation_function": "geglu"})", "is 'geglu'; only 'swiglu'");
  CHECK(parse_config(begin + R"("rope_theta": 12})", "config.json").rotary.theta == 12);
  check_refused(begin + R"("rope_parameters": {"rope_type": "yarn"}})", "rope_type is 'yarn'");
  check_refused(begin + R"("rope_scaling": {"rope_type": "linear", "factor": 2}})",
                "rope_scaling has 'linear'");
  check_refused(begin + R"("embd_pdrop": 0.1})", "embd_pdrop is 0.1 and the layers' dropout 0");
  check_refused(begin + R"("head_dim": 32})", "attention heads have 32 columns");
}

}  // namespace finetune::test
