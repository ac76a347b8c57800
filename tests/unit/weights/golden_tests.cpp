// Every format in shared/golden compared with Hugging Face's safetensors file.
#include <doctest/doctest.h>

#include "../contains.h"
#include "unit/shared.h"
#include "unit/weights/weights_test.h"

using namespace finetune;
using namespace finetune::test;

namespace {

float through_bf16(float value) {
  return float(bfloat16(value));
}
float through_f16(float value) {
  return half_to_float(float_to_half(value));
}

struct Format {
  std::string directory;
  std::string name;
  float (*rounded)(float) = nullptr;
};

const std::vector<Format> kFormats = {
    {"pytorch-zip", "pytorch (zip)"},
    {"pytorch-legacy", "pytorch (legacy)"},
    {"pytorch-gamma-beta", "pytorch (zip)"},
    {"pytorch-metadata", "pytorch (zip)"},
    {"pytorch-parameters", "pytorch (zip)"},
    {"pytorch-views", "pytorch (zip)"},
    {"safetensors-bf16", "safetensors", through_bf16},
    {"safetensors-f16", "safetensors", through_f16},
    {"safetensors-sharded", "safetensors (sharded)"},
    {"tensorflow-h5", "tensorflow (h5)"},
    {"tensorflow-h5-by-hand", "tensorflow (h5)"},
    {"tensorflow-1-checkpoint", "tensorflow 1 checkpoint"},
};

}  // namespace

TEST_CASE("all formats hold the tensors of the reference") {
  if (!have_shared("golden/formats") || !have_shared("golden/tiny-bert-classification")) return;
  auto reference = open_weights(shared_path("golden/tiny-bert-classification"));
  REQUIRE(reference->tensors().size() == 41);
  for (const Format& format : kFormats) {
    CAPTURE(format.directory);
    auto source = open_weights(shared_path("golden/formats/" + format.directory));
    CHECK(source->format() == format.name);
    CHECK(source->tensors().size() == reference->tensors().size());
    for (const WeightInfo& wanted : reference->tensors()) {
      CAPTURE(wanted.name);
      const WeightInfo* info = source->find(wanted.name);
      REQUIRE(info != nullptr);
      CHECK(info->shape == wanted.shape);
      std::vector<float> expected = values_of(*reference, wanted);
      if (format.rounded) {
        for (float& value : expected) value = format.rounded(value);
      }
      CHECK(same_bits(values_of(*source, *info), expected));
    }
  }
}

TEST_CASE("weights of a bare encoder get the prefix and lose their buffers") {
  if (!have_shared("golden/formats") || !have_shared("golden/tiny-bert-classification")) return;
  auto reference = open_weights(shared_path("golden/tiny-bert-classification"));
  auto source = open_weights(shared_path("golden/formats/safetensors-no-prefix-no-head"),
                             {.base_prefix = "bert."});
  CHECK(source->find("classifier.weight") == nullptr);
  CHECK(source->tensors().size() == 39);
  REQUIRE(source->ignored().size() == 1);
  CHECK(source->ignored()[0].stored_name == "embeddings.position_ids");
  for (const WeightInfo& info : source->tensors()) {
    const WeightInfo* wanted = reference->find(info.name);
    REQUIRE_MESSAGE(wanted != nullptr, info.name);
    CHECK(same_bits(values_of(*source, info), values_of(*reference, *wanted)));
  }
}

TEST_CASE("the optimizer's variables of a TensorFlow 1 checkpoint are ignored") {
  if (!have_shared("golden/formats")) return;
  auto source = open_weights(shared_path("golden/formats/tensorflow-1-checkpoint"));
  CHECK(source->ignored().size() == 5);
  for (const WeightInfo& info : source->ignored()) {
    bool slot = contains(info.stored_name, "/adam_");
    CHECK_MESSAGE((slot || info.stored_name == "global_step"), info.stored_name);
  }
  CHECK(source->files().size() == 2);
}

TEST_CASE("a TensorFlow 1 checkpoint opens by its prefix and by its data file") {
  if (!have_shared("golden/formats")) return;
  auto folder = shared_path("golden/formats/tensorflow-1-checkpoint");
  CHECK(open_weights(folder / "bert_model.ckpt")->tensors().size() == 41);
  CHECK(open_weights(folder / "bert_model.ckpt.data-00000-of-00001")->tensors().size() == 41);
}

TEST_CASE("writing gives the very bytes that Hugging Face writes") {
  if (!have_shared("golden/tiny-bert-classification")) return;
  for (std::string name : {"classification", "qa"}) {
    auto path = shared_path("golden/tiny-bert-" + name) / "model.safetensors";
    auto source = open_weights(path);
    std::vector<std::vector<float>> values;
    std::vector<WeightView> views;
    for (const WeightInfo& info : source->tensors()) values.push_back(values_of(*source, info));
    for (size_t i = values.size(); i-- > 0;) {  // not in the file's order
      views.push_back({source->tensors()[i].name, source->tensors()[i].shape, values[i].data()});
    }
    TemporaryDirectory directory;
    write_safetensors(directory / "model.safetensors", views, DType::f32);
    CHECK(read_bytes(directory / "model.safetensors") == read_bytes(path));
  }
}

TEST_CASE("real checkpoints of other origin") {
  if (!have_shared("weights/camphr_tiny_ner_bert")) return;
  auto torch = open_weights(shared_path("weights/camphr_tiny_ner_bert"));
  REQUIRE(torch->find("bert.encoder.layer.0.intermediate.dense.weight") != nullptr);
  CHECK(torch->find("bert.encoder.layer.0.intermediate.dense.weight")->shape ==
        std::vector<int64_t>{64, 16});
  CHECK(torch->find("bert.embeddings.word_embeddings.weight")->shape ==
        std::vector<int64_t>{402, 16});
  auto keras = open_weights(shared_path("weights/keras_bert_tf_ckpt"));
  CHECK(keras->find("bert.embeddings.word_embeddings.weight")->shape ==
        std::vector<int64_t>{15, 4});
  for (const WeightInfo& info : keras->tensors()) {
    for (float value : values_of(*keras, info)) CHECK(std::abs(value) < 10.0f);
  }
}
