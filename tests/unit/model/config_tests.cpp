// config.json: values, defaults, and errors with the key's name.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "../shared.h"
#include "config_errors.h"

namespace finetune::test {
namespace {

EncoderConfig load(const std::string& name) {
  std::ifstream file(shared_path(name), std::ios::binary);
  return parse_config(std::string(std::istreambuf_iterator<char>(file), {}), name);
}

}  // namespace

TEST_CASE("sizes that no machine has memory for are refused, with their numbers") {
  check_refused(R"({"vocab_size": 1000000000, "hidden_size": 1000000, "num_attention_heads": 1})",
                "vocab_size 1000000000, hidden_size 1000000, num_hidden_layers 12");
  check_refused(R"({"hidden_size": 1048576, "num_attention_heads": 1, "num_hidden_layers": 4096})",
                "billion parameters");
  check_refused(
      R"({"type_vocab_size": 2147483647, "hidden_size": 1024, "num_attention_heads": 16})",
      "type_vocab_size 2147483647");
  parse_config(R"({"vocab_size": 500000, "hidden_size": 16384, "num_attention_heads": 128,
                   "num_hidden_layers": 128, "intermediate_size": 65536})",
               "config.json");  // 400 billion parameters
}

TEST_CASE("objects of many keys are refused: time grows with their square") {
  auto object = [](int members) {
    std::string out = "{";
    for (int i = 0; i < members; ++i) out += concat(i ? "," : "", "\"", i, "\":\"", i, "\"");
    return out + "}";
  };
  check_refused(object(70'000), "has 70000 entries");
  check_refused(concat("{\"x\":[", object(40'000), ",", object(40'000), "]}"), "has 80001 entries");
  check_refused(concat("{\"id2label\":", object((1 << 18) + 1), "}"),
                "id2label has 262145 entries");
  CHECK(parse_config(concat("{\"id2label\":", object(100'000), "}"), "c").labels.size() == 100'000);
}

TEST_CASE("a configuration of Hugging Face is read whole") {
  if (!have_shared("golden/tiny-bert-classification/config.json")) return;
  EncoderConfig c = load("golden/tiny-bert-classification/config.json");
  CHECK(c.vocab_size == 4000);
  CHECK(c.hidden_size == 64);
  CHECK(c.num_hidden_layers == 2);
  CHECK(c.num_attention_heads == 2);
  CHECK(c.head_size() == 32);
  CHECK(c.intermediate_size == 256);
  CHECK(c.max_position_embeddings == 512);
  CHECK(c.type_vocab_size == 2);
  CHECK(c.hidden_act == Activation::gelu);
  CHECK(c.hidden_dropout_prob == 0);
  CHECK(c.attention_probs_dropout_prob == 0);
  CHECK(c.head_dropout(HeadKind::sequence) == 0);
  CHECK(c.layer_norm_eps == 1e-12);
  CHECK(c.initializer_range == 0.05);
  REQUIRE(c.labels.size() == 24);
  CHECK(c.labels[0] == "Business & advertising services");
  CHECK(c.labels[9] == "Hardware & building materials");
  CHECK(c.labels[23] == "Vehicle parts & service");
  CHECK(contains(c.source_json, "\"transformers_version\""));
}

TEST_CASE("num_labels counts before _num_labels") {
  CHECK(parse_config(R"({"num_labels": 4, "_num_labels": 2})", "c").labels.size() == 4);
  CHECK(parse_config(R"({"_num_labels": 3})", "c").labels.size() == 3);
}

TEST_CASE("without model_type the class tells the architecture") {
  const auto type_of = [](std::string_view class_name) {
    const std::string json = concat(R"({"architectures": [")", class_name, R"("]})");
    return parse_config(json, "c").architecture->model_type;
  };
  for (const Architecture& known : all_architectures()) {
    for (const char* kind : {"Model", "ForMaskedLM", "ForSequenceClassification"}) {
      CHECK(type_of(concat(known.class_prefix, kind)) == known.model_type);
    }
  }
  for (const char* other : {"", "MyBertForTransactions", "Robertine", "Bert"}) {
    CHECK(type_of(other) == "bert");
  }
}

TEST_CASE("Google's bert_config.json has no model_type and is BERT") {
  // As published with uncased_L-12_H-768_A-12.
  EncoderConfig c = parse_config(R"({
    "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
    "max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 12,
    "type_vocab_size": 2, "vocab_size": 30522 })",
                                 "bert_config.json");
  CHECK(c.hidden_size == 768);
  CHECK(c.num_hidden_layers == 12);
  CHECK(c.layer_norm_eps == 1e-12);
}

TEST_CASE("DistilBERT's keys are read, and BERT's names of the same sizes") {
  EncoderConfig c = parse_config(R"({"model_type": "distilbert"})", "c");
  CHECK(c.architecture->class_prefix == "DistilBert");
  CHECK(c.num_hidden_layers == 6);
  CHECK(c.hidden_size == 768);
  CHECK(c.type_vocab_size == 0);
  CHECK(c.layer_norm_eps == 1e-12);
  CHECK(c.head.activation == Activation::relu);
  CHECK(c.head_dropout(HeadKind::sequence) == 0.2);
  CHECK(c.head_dropout(HeadKind::token) == 0.1);
  c = parse_config(R"({"model_type": "distilbert", "dim": 24, "n_layers": 3, "n_heads": 4,
                       "hidden_dim": 40, "dropout": 0.3, "attention_dropout": 0.4,
                       "activation": "relu", "qa_dropout": 0.5, "seq_classif_dropout": 0.6,
                       "vocab_size": 99, "max_position_embeddings": 64, "pad_token_id": 7,
                       "hidden_size": 24, "type_vocab_size": 2, "layer_norm_eps": 0.5,
                       "classifier_dropout": 0.7})",
                   "c");
  CHECK(c.hidden_size == 24);
  CHECK(c.num_hidden_layers == 3);
  CHECK(c.num_attention_heads == 4);
  CHECK(c.intermediate_size == 40);
  CHECK(c.hidden_dropout_prob == 0.3);
  CHECK(c.attention_probs_dropout_prob == 0.4);
  CHECK(c.hidden_act == Activation::relu);
  CHECK(c.head_dropout(HeadKind::token) == 0.5);
  CHECK(c.head_dropout(HeadKind::sequence) == 0.6);
  CHECK(c.vocab_size == 99);
  CHECK(c.max_length() == 64);
  CHECK(c.pad_token_id == 7);
  CHECK(c.type_vocab_size == 0);
  CHECK(c.layer_norm_eps == 1e-12);
  c = parse_config(R"({"model_type": "distilbert", "hidden_size": 48, "num_hidden_layers": 2,
                       "num_attention_heads": 3, "intermediate_size": 64})",
                   "c");
  CHECK(c.hidden_size == 48);
  CHECK(c.num_hidden_layers == 2);
  CHECK(c.num_attention_heads == 3);
  CHECK(c.intermediate_size == 64);
  check_refused(R"({"model_type": "distilbert", "dim": 10, "n_heads": 4})",
                "dim 10 is not a multiple of n_heads 4");
  check_refused(R"({"model_type": "distilbert", "n_heads": 4, "num_attention_heads": 3})",
                "n_heads is 4 and num_attention_heads is 3, which mean the same");
  check_refused(R"({"model_type": "distilbert", "qa_dropout": 1})", "qa_dropout is 1");
  check_refused(R"({"model_type": "distilbert", "activation": "gelu_fast"})",
                "activation 'gelu_fast' is unknown");
}

TEST_CASE("ELECTRA's embeddings are as wide as it says, and no wider than its layers") {
  EncoderConfig c = parse_config(R"({"model_type": "electra"})", "c");
  CHECK(c.architecture->class_prefix == "Electra");
  CHECK(c.hidden_size == 256);
  CHECK(c.num_attention_heads == 4);
  CHECK(c.intermediate_size == 1024);
  CHECK(c.embedding_size() == 128);
  CHECK(c.has_projection());
  CHECK(c.type_vocab_size == 2);
  CHECK(c.max_length() == 512);
  CHECK(c.head.activation == Activation::gelu);
  CHECK(c.head_dropout(HeadKind::sequence) == 0.1);
  c = parse_config(R"({"model_type": "electra", "hidden_size": 64, "embedding_size": 64})", "c");
  CHECK(c.embedding_size() == 64);
  CHECK_FALSE(c.has_projection());
  check_refused(R"({"model_type": "electra", "hidden_size": 64, "embedding_size": 128})",
                "embedding_size 128 is above hidden_size 64");
}

TEST_CASE("ALBERT's layers share weights as Hugging Face divides them into groups") {
  EncoderConfig c = parse_config(R"({"model_type": "albert"})", "c");
  CHECK(c.architecture->class_prefix == "Albert");
  CHECK(c.vocab_size == 30000);
  CHECK(c.hidden_size == 4096);
  CHECK(c.num_attention_heads == 64);
  CHECK(c.intermediate_size == 16384);
  CHECK(c.embedding_size() == 128);
  CHECK(c.hidden_act == Activation::gelu_tanh);
  CHECK(c.hidden_dropout_prob == 0);
  CHECK(c.head_dropout(HeadKind::sequence) == 0.1);
  CHECK(c.head_dropout(HeadKind::token) == 0);
  CHECK_FALSE(c.layer.output_dropout);
  CHECK(c.num_hidden_layers == 12);
  CHECK(c.weights_layer(11) == 0);
  CHECK(c.shares_above(10));
  CHECK_FALSE(c.shares_above(11));
  const auto weights_of = [](std::string_view layers) {
    const EncoderConfig c =
        parse_config(concat(R"({"model_type": "albert", "hidden_size": 64, "embedding_size": 64, )",
                            layers, "}"),
                     "c");
    CHECK(c.has_projection());  // also where widths are equal
    std::vector<int64_t> found;
    for (int64_t l = 0; l < c.num_hidden_layers; ++l) found.push_back(c.weights_layer(l));
    return found;
  };
  CHECK(weights_of(R"("num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2)") ==
        std::vector<int64_t>{0, 1, 0, 1, 4, 5, 4, 5});
  // int(i / (7 / 3)) in Python.
  CHECK(weights_of(R"("num_hidden_layers": 7, "num_hidden_groups": 3)") ==
        std::vector<int64_t>{0, 0, 0, 3, 3, 5, 5});
  check_refused(R"({"model_type": "albert", "num_hidden_groups": 13})", "num_hidden_groups 13");
  check_refused(R"({"model_type": "albert", "inner_group_num": 400})", "times inner_group_num 400");
  check_refused(R"({"model_type": "albert", "embedding_size": 5000})", "embedding_size 5000");
}

TEST_CASE("MPNet's positions begin at 2, and its buckets are 32") {
  EncoderConfig c = parse_config(R"({"model_type": "mpnet", "pad_token_id": 5})", "c");
  CHECK(c.architecture->class_prefix == "MPNet");
  CHECK(c.vocab_size == 30527);
  CHECK(c.type_vocab_size == 0);
  CHECK(c.max_length() == 510);
  CHECK(c.embeddings.first_position == 2);
  CHECK(c.embeddings.uncounted_id == 1);  // whatever pad_token_id is
  CHECK(c.pad_token_id == 1);
  CHECK(parse_config(R"({"pad_token_id": null})", "c").pad_token_id == -1);
  CHECK_FALSE(c.embeddings.pair_types);
  CHECK(c.layer.position_bias);
  CHECK(c.head_dropout(HeadKind::sequence) == 0.1);
  c = parse_config(R"({"model_type": "mpnet", "classifier_dropout": 0.5})", "c");
  CHECK(c.head_dropout(HeadKind::sequence) == 0.1);
  check_refused(R"({"model_type": "mpnet", "relative_attention_num_buckets": 64})",
                "relative_attention_num_buckets is 64; only 32 can be loaded");
}

TEST_CASE("RoBERTa's positions begin behind the padding token's, and its pairs have one type") {
  EncoderConfig c = parse_config(R"({"model_type": "roberta"})", "c");
  CHECK(c.architecture->class_prefix == "Roberta");
  CHECK(c.vocab_size == 50265);
  CHECK(c.pad_token_id == 1);
  CHECK(c.max_length() == 510);  // Hugging Face's class has 512 positions, published models 514
  CHECK(c.type_vocab_size == 2);
  CHECK_FALSE(c.embeddings.pair_types);
  CHECK(c.layer_norm_eps == 1e-12);
  CHECK(c.head.activation == Activation::tanh);
  CHECK(c.head_dropout(HeadKind::sequence) == 0.1);
  CHECK(c.head_dropout(HeadKind::token) == 0);
  c = parse_config(R"({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 3,
                       "type_vocab_size": 1, "layer_norm_eps": 1e-05, "hidden_act": "relu",
                       "classifier_dropout": 0.3})",
                   "c");
  CHECK(c.embeddings.first_position == 4);
  CHECK(c.embeddings.uncounted_id == 3);
  CHECK(c.max_length() == 510);
  CHECK(c.type_vocab_size == 1);
  CHECK(c.layer_norm_eps == 1e-5);
  CHECK(c.hidden_act == Activation::relu);
  CHECK(c.head_dropout(HeadKind::sequence) == 0.3);
  check_refused(R"({"model_type": "roberta", "position_embedding_type": "relative_key"})",
                "position_embedding_type is 'relative_key'");
  check_refused(R"({"model_type": "roberta", "is_decoder": true})", "is_decoder is true");
  check_refused(R"({"model_type": "roberta", "pad_token_id": 600})",
                "max_position_embeddings 512 leaves no position for a text");
  check_refused(R"({"model_type": "roberta", "pad_token_id": -1})", "pad_token_id is -1");
  check_refused(R"({"model_type": "gpt2"})",
                "model_type is 'gpt2'; only 'bert', 'albert', 'deberta-v2', 'distilbert', "
                "'electra', 'modernbert', 'mpnet', 'nomic_bert', 'roberta', 'xlm-roberta' and "
                "'camembert' can "
                "be loaded");
}

TEST_CASE("XLM-RoBERTa and CamemBERT are RoBERTa under other names") {
  EncoderConfig c = parse_config(R"({"model_type": "xlm-roberta", "max_position_embeddings": 514,
                                     "vocab_size": 250002, "type_vocab_size": 1})",
                                 "c");
  CHECK(c.architecture->class_prefix == "XLMRoberta");
  CHECK(c.architecture->names.base_prefix == "roberta.");
  CHECK(c.max_length() == 512);
  // What transformers 5 adds; CamemBERT's bos and eos are its tokenizer's, not what counts.
  c = parse_config(R"({"model_type": "camembert", "vocab_size": 32005, "bos_token_id": 5,
                       "eos_token_id": 6, "pad_token_id": 1, "add_cross_attention": false,
                       "is_decoder": false, "dtype": "float32", "tie_word_embeddings": true})",
                   "c");
  CHECK(c.architecture->class_prefix == "Camembert");
  CHECK(c.embeddings.first_position == 2);
  CHECK_FALSE(c.embeddings.pair_types);
}

TEST_CASE("broken configurations are refused by name") {
  const std::pair<const char*, const char*> faults[] = {
      {"config-not-json", "not valid JSON"},
      {"config-heads-do-not-divide", "hidden_size 64 is not a multiple of num_attention_heads 3"},
      {"config-relative-positions", "position_embedding_type is 'relative_key'"}};
  for (auto [name, part] : faults) {
    const std::string path = std::string("golden/broken/") + name + "/config.json";
    if (!have_shared(path)) return;
    std::string message = error_line(ExitCode::model, [&] { load(path); });
    INFO(path, " -> ", message);
    CHECK(message.find(path) == 0);
    CHECK(contains(message, part));
  }
}

TEST_CASE("defaults, names of activations, labels in any order") {
  EncoderConfig c =
      parse_config(R"({"classifier_dropout": null, "hidden_dropout_prob": 0.2})", "c");
  CHECK(c.hidden_size == 768);
  CHECK(c.head_dropout(HeadKind::sequence) == 0.2);
  CHECK(c.labels.empty());
  c = parse_config(R"({"classifier_dropout": 0, "hidden_dropout_prob": 0.2})", "c");
  CHECK(c.head_dropout(HeadKind::sequence) == 0);
  const std::pair<const char*, Activation> names[] = {{"gelu", Activation::gelu},
                                                      {"gelu_new", Activation::gelu_tanh},
                                                      {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                      {"relu", Activation::relu},
                                                      {"silu", Activation::silu},
                                                      {"swish", Activation::silu},
                                                      {"tanh", Activation::tanh}};
  for (auto [name, activation] : names) {
    std::string json = std::string(R"({"hidden_act": ")") + name + "\"}";
    CHECK(parse_config(json, "c").hidden_act == activation);
  }
  c = parse_config(R"({"id2label": {"10":"k","2":"c","0":"a","1":"b","3":"d","4":"e","5":"f",
                       "6":"g","7":"h","8":"i","9":"j"}, "problem_type": "regression"})",
                   "c");
  CHECK(c.labels ==
        std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"});
  CHECK(c.problem_type == "regression");
}

TEST_CASE("values out of range are refused with file, key and value") {
  check_refused("[]", "not a JSON object");
  check_refused("", "not valid JSON");
  check_refused(R"({"hidden_size": 0})", "hidden_size is 0, not an integer from 1");
  check_refused(R"({"hidden_size": "64"})", "hidden_size is '64'");
  check_refused(R"({"hidden_size": 64.5})", "hidden_size is 64.5");
  check_refused(R"({"num_hidden_layers": -1})", "num_hidden_layers is -1");
  check_refused(R"({"vocab_size": 3000000000})", "vocab_size is 3000000000");
  check_refused(R"({"hidden_size": [64]})", "hidden_size is a list");
  check_refused(R"({"hidden_dropout_prob": 1})", "hidden_dropout_prob is 1");
  check_refused(R"({"hidden_dropout_prob": -0.1})", "hidden_dropout_prob is -0.1");
  check_refused(R"({"layer_norm_eps": "x"})", "layer_norm_eps is 'x'");
  check_refused(R"({"hidden_act": "mish"})", "hidden_act 'mish' is unknown");
  check_refused(R"({"model_type": "gpt2"})", "model_type is 'gpt2'");
  check_refused(R"({"is_decoder": true})", "is_decoder is true");
  check_refused(R"({"is_causal": true})", "is_causal is true");
  check_refused(R"({"pad_token_id": 40000})", "pad_token_id is 40000");
}

TEST_CASE("labels are named by id2label, by label2id, by num_labels") {
  const auto labels = [](const std::string& json) {
    const EncoderConfig c = parse_config(json, "c");
    CHECK(c.labels_fault.empty());
    return c.labels;
  };
  using Names = std::vector<std::string>;
  CHECK(labels(R"({"id2label": {"1": 1, "0": 0}})") == Names{"0", "1"});
  CHECK(labels(R"({"id2label": {"0": -2, "1": 1.5, "2": true, "3": "x"}})") ==
        Names{"-2", "1.5", "true", "x"});
  CHECK(labels(R"({"id2label": null, "label2id": {"b": 1, "a": 0}})") == Names{"a", "b"});
  CHECK(labels(R"({"id2label": {}, "label2id": {"b": 0}})") == Names{"b"});
  CHECK(labels(R"({"id2label": {"0": "x"}, "label2id": {"y": 0}, "num_labels": 3})") == Names{"x"});
  CHECK(labels(R"({"num_labels": 3})") == Names{"LABEL_0", "LABEL_1", "LABEL_2"});
  CHECK(labels(R"({"_num_labels": 1, "label2id": "none"})") == Names{"LABEL_0"});
  CHECK(labels("{}").empty());
}

TEST_CASE("labels that cannot be used are a fault of the head alone") {
  const auto fault = [](const std::string& json) {
    const EncoderConfig c = parse_config(json, "c");
    CHECK(c.labels.empty());
    return c.labels_fault;
  };
  CHECK(fault(R"({"id2label": ["a"]})") == "c: id2label is not an object");
  CHECK(fault(R"({"id2label": {"0": "a", "2": "b"}})") ==
        "c: id2label has 2 but not 1: ids must run from 0 without a gap");
  CHECK(fault(R"({"id2label": {"-1": "a", "0": "b"}})") ==
        "c: id2label has -1 but not 0: ids must run from 0 without a gap");
  CHECK(fault(R"({"id2label": {"x": "a"}})") == "c: id2label: key 'x' is not an integer");
  CHECK(fault(R"({"id2label": {"0": null}})") ==
        "c: id2label: the label of 0 is null, not a string");
  CHECK(fault(R"({"id2label": {"0": ["a"]}})") ==
        "c: id2label: the label of 0 is a list, not a string");
  CHECK(fault(R"({"id2label": {"0": "a", "00": "b"}})") == "c: id2label: 0 occurs twice");
  CHECK(fault(R"({"id2label": {"0": 1, "1": "0", "2": "1"}})") ==
        "c: id2label: 0 and 2 have the same label, '1'");
  CHECK(fault(R"({"label2id": {"a": 0, "b": 0}})") ==
        "c: label2id: 'a' and 'b' have the same id, 0");
  CHECK(fault(R"({"label2id": {"a": "x"}})") ==
        "c: label2id: the id of 'a' is 'x', not an integer");
  CHECK(fault(R"({"label2id": {"a": 1, "b": 2}})") ==
        "c: label2id has 1 but not 0: ids must run from 0 without a gap");
  CHECK(fault(R"({"num_labels": 0})") == "c: num_labels is 0, not an integer from 1 to 262144");
}

TEST_CASE("named shapes") {
  CHECK(named_shape("minilm").hidden_size == 384);
  CHECK(named_shape("base").num_hidden_layers == 12);
  CHECK(named_shape("large").num_attention_heads == 16);
  CHECK(named_shape("tiny").head_size() == 64);
  CHECK_THROWS_AS(named_shape("huge"), Error);
}

}  // namespace finetune::test
