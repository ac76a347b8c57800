// Pooled features of a frozen encoder beside transformers' hidden states, and which can be pooled.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../contains.h"
#include "../shared.h"
#include "../temporary_directory.h"
#include "core/error.h"
#include "core/files/files.h"
#include "data/packing.h"
#include "engine/engine.h"
#include "engine/pooled_weights.h"
#include "engine/pretrained.h"
#include "error_line.h"
#include "weights/weights.h"

using namespace finetune;

namespace {

std::vector<float> golden(const WeightSource& file, std::string_view name) {
  const WeightInfo* info = file.find(name);
  REQUIRE(info != nullptr);
  int64_t count = 1;
  for (int64_t size : info->shape) count *= size;
  std::vector<float> out(static_cast<size_t>(count));
  file.read(*info, out.data());
  return out;
}

// The mean of a text's rows of `hidden` (texts, width, size), brought to mean 0 and variance 1.
std::vector<double> normalized_mean(const std::vector<float>& hidden, size_t text, size_t length,
                                    size_t width, size_t size) {
  std::vector<double> out(size);
  for (size_t i = 0; i < length * size; ++i) {
    out[i % size] += double(hidden[text * width * size + i]) / double(length);
  }
  const double mean = std::accumulate(out.begin(), out.end(), 0.0) / double(size);
  double variance = 0;
  for (double value : out) variance += (value - mean) * (value - mean) / double(size);
  for (double& value : out) value = (value - mean) / std::sqrt(variance);
  return out;
}

EncoderConfig config_of(const std::string& name) {
  return open_model_config(test::shared_path("golden/" + name).string(), true).config;
}

// Of golden values of transformers in that file.
void check_features(const std::string& model, const std::string& forward) {
  INFO(model);
  const fs::path directory = test::shared_path("golden/" + model);
  const EncoderConfig plain = config_of(model);
  const EncoderConfig config = with_pooling(plain, directory);
  CHECK(config.num_hidden_layers == plain.num_hidden_layers + 1);
  CHECK(pooling_of(config) == Pooling::mean);
  CHECK(pooling_of(plain) == Pooling::first);
  CHECK(pooling_of(without_pooling(config)) == Pooling::first);
  CHECK(with_pooling(config, directory).num_hidden_layers == config.num_hidden_layers);

  const auto file = open_weights(test::shared_path("golden/" + forward));
  const std::vector<float> ids = golden(*file, "in.input_ids"),
                           mask = golden(*file, "in.attention_mask"),
                           hidden = golden(*file, "hidden.2");
  const size_t size = size_t(config.hidden_size),
               width = size_t(file->find("in.input_ids")->shape[1]);
  TokenizedSamples samples;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (mask[i] != 0) samples.ids.push_back(int32_t(ids[i]));
    if (i % width + 1 < width) continue;
    // The second text begins behind the first separator, which ends the text too.
    const auto begin = samples.ids.begin() + samples.offsets.back();
    const auto separator = std::find(begin, samples.ids.end(), samples.ids.back());
    samples.second.push_back(uint32_t(separator + 1 - begin));
    samples.offsets.push_back(int64_t(samples.ids.size()));
  }

  const auto comm = make_solo_communicator();
  Engine engine(make_backend("cpu", 1, "fp32"), config, {HeadKind::sequence, config.hidden_size},
                *comm);
  const auto encoder = open_weights(directory, config.architecture->names);
  const auto weights = pooled_weights(*encoder, config, LinearHead::identity(config.hidden_size));
  engine.set_weights([&](float* arena) {
    load_pretrained(engine.table(), *weights, 0.02, 1, HeadPolicy::require, arena);
  });
  engine.reserve({}, {int64_t(samples.ids.size()), samples.size()});
  std::vector<uint32_t> all(size_t(samples.size()));
  std::iota(all.begin(), all.end(), 0u);
  PackedBatch batch;
  pack(samples, all, {}, batch);
  std::vector<float> features;
  engine.infer(batch, features);

  double worst = 0;
  for (size_t text = 0; text < all.size(); ++text) {
    const auto length = size_t(samples.length(int64_t(text)));
    const std::vector<double> mean = normalized_mean(hidden, text, length, width, size);
    for (size_t i = 0; i < size; ++i) {
      const double expected = 4 * std::tanh(mean[i] / 4);
      worst = std::max(worst, std::abs(expected - double(features[text * size + i])));
    }
  }
  MESSAGE("largest difference ", worst);
  CHECK(worst < 4e-3);  // the first token's own state weighs 1/2048
}

}  // namespace

TEST_CASE("a pooled feature is the activation's of the normalized mean of transformers' states") {
  check_features("tiny-bert-classification", "forward-classification.safetensors");
  check_features("family/nomic_bert/classification",
                 "family/nomic_bert/forward-classification.safetensors");
}

TEST_CASE("a model trained with its first token, or with another attention, is pooled by that") {
  test::TemporaryDirectory directory;
  const EncoderConfig bert = config_of("tiny-bert-classification");
  fs::create_directory(directory / "1_Pooling");
  write_file(directory / "1_Pooling" / "config.json", R"({"pooling_mode_cls_token": true})");
  CHECK(with_pooling(bert, directory.path()).num_hidden_layers == bert.num_hidden_layers);
  write_file(directory / "1_Pooling" / "config.json", R"({"pooling_mode_cls_token": false})");
  CHECK(with_pooling(bert, directory.path()).num_hidden_layers == bert.num_hidden_layers + 1);
  const EncoderConfig mpnet = config_of("family/mpnet/classification");
  CHECK(with_pooling(mpnet, directory.path()).num_hidden_layers == mpnet.num_hidden_layers);
  CHECK(pooling_of(with_pooling(config_of("family/electra/classification"), directory.path())) ==
        Pooling::mean);
  const EncoderConfig distilbert = config_of("family/distilbert/classification");
  CHECK(test::contains(with_pooling(distilbert, directory.path()).source_json, "\"n_layers\":3"));
  const EncoderConfig nomic = config_of("family/nomic_bert/qa");
  CHECK(test::contains(with_pooling(nomic, directory.path()).source_json, "\"n_layer\":3"));
  const std::string fault = test::error_line(ExitCode::usage, [&] {
    with_pooling(config_of("family/modernbert/classification"), directory.path());
  });
  CHECK(test::contains(fault, "use --recipe auto"));
}
