// The model tests' random weights, passes and golden-file reader.
#include "fixture.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/numeric/philox.h"
#include "op_case.h"
#include "small_encoder.h"

namespace finetune::test {

std::map<std::string, GoldenTensor> read_golden(const std::filesystem::path& path) {
  auto file = simdjson::padded_string::load(path.string());
  std::string_view bytes = std::string_view(file.value());
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), 8);
  const char* data = bytes.data() + 8 + header_size;
  simdjson::dom::parser parser;
  simdjson::dom::object header = parser.parse(std::string(bytes.substr(8, header_size)));
  std::map<std::string, GoldenTensor> tensors;
  for (auto [name, entry] : header) {
    if (name == "__metadata__") continue;
    GoldenTensor tensor;
    for (int64_t n : entry["shape"].get_array()) tensor.shape.push_back(n);
    int64_t begin = entry["data_offsets"].at(0), end = entry["data_offsets"].at(1);
    std::string_view dtype = entry["dtype"];
    if (dtype == "I64") {
      tensor.integers.resize(size_t(end - begin) / 8);
      std::memcpy(tensor.integers.data(), data + begin, size_t(end - begin));
    } else if (dtype == "I32") {
      std::vector<int32_t> values(size_t(end - begin) / 4);
      std::memcpy(values.data(), data + begin, size_t(end - begin));
      tensor.integers.assign(values.begin(), values.end());
    } else {
      FINETUNE_CHECK(dtype == "F32");
      tensor.values.resize(size_t(end - begin) / 4);
      std::memcpy(tensor.values.data(), data + begin, size_t(end - begin));
    }
    tensors[std::string(name)] = std::move(tensor);
  }
  return tensors;
}

std::vector<NamedBackend> model_backends() {
  std::vector<NamedBackend> all;
  all.push_back({"reference", make_reference_backend()});
  for (const BackendFactory& factory : backends_under_test()) {
    auto backend = factory.make();
    if (!backend || backend->compute_type() == DType::bf16) continue;  // tolerances are fp32's
    all.push_back({factory.name, std::move(backend), factory.device == Device::gpu ? 1e-5 : 1e-6});
  }
  return all;
}

PackedBatch pack(const std::vector<Sequence>& sequences) {
  PackedBatch batch;
  batch.offsets = {0};
  for (const Sequence& s : sequences) {
    for (size_t i = 0; i < s.ids.size(); ++i) {
      batch.ids.push_back(s.ids[i]);
      batch.types.push_back(s.types[i]);
      batch.positions.push_back(uint32_t(i));
      batch.token_samples.push_back(s.sample);
    }
    batch.offsets.push_back(int32_t(batch.ids.size()));
    batch.samples.push_back(s.sample);
    batch.indices.push_back(s.sample);
    batch.max_length = std::max(batch.max_length, int64_t(s.ids.size()));
  }
  batch.order.resize(batch.ids.size());
  std::iota(batch.order.begin(), batch.order.end(), 0);
  std::stable_sort(batch.order.begin(), batch.order.end(), [&](int32_t a, int32_t b) {
    return batch.ids[size_t(a)] < batch.ids[size_t(b)];
  });
  return batch;
}

std::vector<Sequence> random_sequences(const EncoderConfig& config,
                                       const std::vector<int>& lengths) {
  std::vector<Sequence> out;
  for (uint32_t i = 0; i < lengths.size(); ++i) {
    Sequence s;
    s.sample = i + 3;
    for (uint32_t t = 0; t < uint32_t(lengths[i]); ++t) {
      PhiloxBlock bits = philox({i, 5}, {t, 0, 0, 0});
      const int64_t id = bits[0] % uint32_t(config.vocab_size);
      s.ids.push_back(int32_t((id + (id == config.pad_token_id)) % config.vocab_size));
      s.types.push_back(t * 2 > uint32_t(lengths[i]));
    }
    out.push_back(s);
  }
  return out;
}

EncoderConfig small_config(int64_t layers) {
  return test::encoder_of(
      {.words = 37, .hidden = 12, .layers = layers, .heads = 3, .inner = 29, .positions = 24});
}

Arena::Arena(Backend& backend, const std::vector<float>& values)
    : Arena(backend, int64_t(values.size())) {
  backend.upload(memory_.get(), values.data(), values.size() * sizeof(float));
}

Arena::Arena(Backend& backend, int64_t size)
    : backend_(backend), size_(size), memory_(backend.allocate(size_t(size) * sizeof(float))) {}

std::vector<float> Arena::values() const {
  return download(backend_, vector(data(), size_));
}

std::vector<float> download(Backend& backend, Tensor t) {
  FINETUNE_CHECK(t.contiguous());
  std::vector<float> out(static_cast<size_t>(t.size()));
  backend.download(out.data(), t.data, out.size() * sizeof(float));
  return out;
}

std::vector<float> random_weights(const ParameterTable& table, double range) {
  std::vector<float> arena(size_t(table.size()), 0.0f);
  for (const Parameter& p : table.parameters()) {
    for (int64_t i = 0; i < p.size(); ++i) {
      PhiloxBlock bits = philox({uint32_t(p.offset), 8}, {uint32_t(i), 0, 0, 0});
      double value = (2 * unit_interval(bits[0]) - 1) * range;
      if (p.init == Parameter::Init::ones) value += 1;
      arena[size_t(p.offset + i)] = float(std::round(value * 65536) / 65536);
    }
  }
  return arena;
}

std::vector<float> rounded_products(const ParameterTable& table, const std::vector<float>& weights,
                                    const ParameterTable& rounded) {
  std::vector<float> out(size_t(rounded.size()));
  for (size_t i = 0; i < table.parameters().size(); ++i) {
    const Parameter& from = table.parameters()[i];
    const Parameter& to = rounded.parameters()[i];
    const float* begin = weights.data() + from.offset;
    if (to.dtype == DType::bf16) {
      auto* place = reinterpret_cast<bfloat16*>(out.data() + to.offset);
      std::transform(begin, begin + from.size(), place, [](float v) { return bfloat16(v); });
    } else {
      std::copy_n(begin, from.size(), out.data() + to.offset);
    }
  }
  return out;
}

PassResult run_pass(Backend& backend, const EncoderConfig& config, const ParameterTable& table,
                    const std::vector<float>& weights, const PackedBatch& batch,
                    const std::vector<float>& coefficients, PassOptions options) {
  Arena parameters(backend, weights), gradients(backend, table.size());
  Encoder encoder(backend, config, table);
  encoder.reserve(batch.tokens(), batch.sequences(), true);
  DeviceBatch device(backend, batch.tokens(), batch.sequences());
  device.upload(batch);
  Tensor logits = encoder.forward(device, parameters.data(), options.dropout, true);
  PassResult result{download(backend, logits), {}};
  Arena dlogits(backend, coefficients);
  encoder.backward(device, parameters.data(), gradients.data(),
                   matrix(dlogits.data(), logits.rows, logits.cols), options.dropout,
                   options.lowest_layer);
  result.gradients = gradients.values();
  return result;
}

std::vector<float> logit_coefficients(const PackedBatch& batch, Head head) {
  std::vector<float> out;
  for (size_t t = 0; t < batch.ids.size(); ++t) {
    if (head.kind == HeadKind::sequence && batch.positions[t] != 0) continue;
    for (int64_t c = 0; c < head.outputs; ++c) {
      PhiloxBlock bits =
          philox({77, uint32_t(c)}, {batch.token_samples[t], batch.positions[t], 0, 0});
      out.push_back(float(2 * unit_interval(bits[0]) - 1));
    }
  }
  return out;
}

Slope slope_along(const ParameterTable& table, uint32_t trial,
                  const std::function<bool(const Parameter&)>& takes,
                  const std::vector<float>& weights, const std::vector<float>& gradients,
                  const std::function<double(const std::vector<float>&)>& loss) {
  std::vector<float> direction(weights.size(), 0.0f);
  for (const Parameter& p : table.parameters()) {
    if (!takes(p)) continue;
    for (int64_t i = p.offset; i < p.offset + p.size(); ++i) {
      const bool up = philox({trial, 4}, {uint32_t(i), 0, 0, 0})[0] & 1;
      direction[size_t(i)] = up ? 1.0f : -1.0f;
    }
  }
  Slope slope;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double value = double(gradients[i]) * direction[i];
    slope.predicted += value;
    slope.norm += value * value;
  }
  slope.norm = std::sqrt(slope.norm);
  const auto between = [&](double step) {
    std::vector<float> up = weights, down = weights;
    for (size_t i = 0; i < weights.size(); ++i) {
      up[i] += float(step) * direction[i];
      down[i] -= float(step) * direction[i];
    }
    return (loss(up) - loss(down)) / (2 * step);
  };
  const double step = 0x1p-11;
  slope.measured = (4 * between(step) - between(2 * step)) / 3;
  return slope;
}

double relative_error(const std::vector<float>& a, const std::vector<float>& b, double floor) {
  FINETUNE_CHECK(a.size() == b.size());
  double error = 0, largest = floor;
  for (size_t i = 0; i < a.size(); ++i) {
    double difference = std::abs(double(a[i]) - double(b[i]));
    error = std::isfinite(difference) ? std::max(error, difference) : INFINITY;
    largest = std::max(largest, std::abs(double(b[i])));
  }
  return error / largest;
}

}  // namespace finetune::test
