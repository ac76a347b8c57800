// The model against golden values of Hugging Face transformers in double precision.
// Logits, hidden states, loss and every gradient (golden/README.txt).
#include <doctest/doctest.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "../shared.h"
#include "fixture.h"

namespace finetune::test {
namespace {

using Golden = std::map<std::string, GoldenTensor>;

struct GoldenModel {
  EncoderConfig config;
  ParameterTable table;
  std::vector<float> weights;
};

GoldenModel load_model(const std::string& name, Head head) {
  std::filesystem::path directory = shared_path("golden/" + name);
  std::ifstream file(directory / "config.json", std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  EncoderConfig config = parse_config(text, directory / "config.json");
  ParameterTable table(config, head);
  std::vector<float> weights(size_t(table.size()), 0.0f);
  Golden tensors = read_golden(directory / "model.safetensors");
  for (const Parameter& p : table.parameters()) {
    INFO(p.name);
    REQUIRE(tensors.count(p.name) == 1);
    const GoldenTensor& tensor = tensors.at(p.name);
    REQUIRE(tensor.shape == p.shape);
    std::copy(tensor.values.begin(), tensor.values.end(), weights.begin() + p.offset);
  }
  return {config, table, weights};
}

// The real rows of a padded (B, S) input, as sequences.
std::vector<Sequence> real_sequences(const Golden& golden) {
  const GoldenTensor& mask = golden.at("in.attention_mask");
  const int64_t batch = mask.shape[0], width = mask.shape[1];
  std::vector<Sequence> out;
  for (int64_t b = 0; b < batch; ++b) {
    Sequence s;
    s.sample = uint32_t(b);
    for (int64_t i = 0; i < width; ++i) {
      size_t at = size_t(b * width + i);
      if (mask.integers[at] == 0) continue;
      s.ids.push_back(int32_t(golden.at("in.input_ids").integers[at]));
      const auto types = golden.find("in.token_type_ids");
      s.types.push_back(types == golden.end() ? 0 : int32_t(types->second.integers[at]));
    }
    out.push_back(s);
  }
  return out;
}

// Largest difference of packed rows (T, cols) from the real rows of a padded (B, S, cols) tensor;
// `first_only`: of (B, cols) from each sequence's first row.
double padded_difference(const std::vector<float>& packed, const GoldenTensor& padded,
                         const PackedBatch& batch, int64_t cols, bool first_only) {
  double worst = 0;
  const int64_t width = padded.shape[1];
  for (int64_t b = 0; b < batch.sequences(); ++b) {
    int64_t begin = batch.offsets[size_t(b)], end = batch.offsets[size_t(b) + 1];
    int64_t length = first_only ? 1 : end - begin;
    int64_t row = first_only ? b : begin;
    for (int64_t i = 0; i < length * cols; ++i) {
      float expected = padded.values[size_t(b * width * cols + i)];
      worst = std::max(worst, double(std::abs(packed[size_t(row * cols + i)] - expected)));
    }
  }
  return worst;
}

void check_hidden_states(const NamedBackend& named, const Encoder& encoder, const Golden& golden,
                         const PackedBatch& batch, const EncoderConfig& config, HeadKind kind) {
  // A layer of transformers is several of ours in ALBERT.
  const int64_t inner = config.layer.inner, layers = config.num_hidden_layers / inner;
  for (int64_t i = 0; i <= layers; ++i) {
    // Some files have the encoder's output alone; a norm may follow before that.
    const bool all = golden.contains("hidden.0");
    if (!all && (i < layers || config.layer.norm_before)) continue;
    Tensor hidden = encoder.hidden_state(i * inner);
    bool first_only = config.reads_first_only(kind) && i == layers;
    double difference = padded_difference(download(*named.backend, hidden),
                                          golden.at(all ? concat("hidden.", i) : "encoder"), batch,
                                          hidden.cols, first_only);
    INFO("hidden state ", i);
    MESSAGE("hidden state ", i, ": largest difference ", difference);
    CHECK(difference <= named.golden_tolerance);
  }
}

// Gradients that are mathematically zero (about 1e-17 in the file) are float sums that cancel, so
// their error is the unit roundoff times the sum of the terms' sizes. The largest such sums are of
// the gradients of logits, whose sizes add up to at most 1 per column.
constexpr double kZero = 1e-12;
constexpr double kLargestForZero = 0x1p-24;

// `left_out`: parameters whose gradients the file does not have. `cancelling`: a parameter whose
// gradient is a sum that cancels to a few thousandths; its error is bounded as that of a zero.
// `zeros`: how many times kLargestForZero a zero may be.
void check_gradients(const GoldenModel& model, const Golden& golden,
                     const std::vector<float>& gradients, size_t left_out = 0,
                     std::string_view cancelling = {}, double zeros = 1) {
  auto largest = [](const std::vector<float>& x) {
    double most = 0;
    for (float value : x) most = std::max(most, double(std::abs(value)));
    return most;
  };
  double worst = 0, worst_zero = 0;
  size_t missing = 0;
  for (const Parameter& p : model.table.parameters()) {
    if (!golden.contains("grad." + p.name)) {
      ++missing;
      continue;
    }
    const GoldenTensor& expected = golden.at("grad." + p.name);
    REQUIRE(expected.shape == p.shape);
    auto begin = gradients.begin() + p.offset;
    std::vector<float> got(begin, begin + p.size());
    INFO("gradient of ", p.name);
    if (largest(expected.values) < kZero) {
      worst_zero = std::max(worst_zero, largest(got));
      CHECK(largest(got) <= zeros * kLargestForZero);
      continue;
    }
    double error = relative_error(got, expected.values);
    worst = std::max(worst, error);
    if (p.name == cancelling) {
      CHECK(error * largest(expected.values) <= kLargestForZero);
      continue;
    }
    CHECK(error <= 1e-5);
  }
  CHECK(missing == left_out);
  MESSAGE("gradients: largest relative difference ", worst, "; where zero: ", worst_zero);
}

void check_classification(const std::string& forward, const std::string& name, int64_t labels_of) {
  if (!have_shared("golden/" + forward)) return;
  Golden golden = read_golden(shared_path("golden/" + forward));
  GoldenModel model = load_model(name, {HeadKind::sequence, labels_of});
  CHECK(int64_t(model.config.labels.size()) == labels_of);
  PackedBatch batch = pack(real_sequences(golden));
  std::vector<int32_t> labels(golden.at("in.labels").integers.begin(),
                              golden.at("in.labels").integers.end());
  const int64_t b = batch.sequences();
  for (const NamedBackend& named : model_backends()) {
    Backend& backend = *named.backend;
    INFO("backend ", named.name);
    MESSAGE("backend ", named.name);
    Arena weights(backend, model.weights), gradients(backend, model.table.size());
    Encoder encoder(backend, model.config, model.table);
    encoder.reserve(batch.tokens(), b, true);
    DeviceBatch device(backend, batch.tokens(), b);
    device.upload(batch);
    Tensor logits = encoder.forward(device, weights.data(), nullptr, true);
    std::vector<float> values = download(backend, logits);
    double worst = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      worst = std::max(worst, double(std::abs(values[i] - golden.at("logits").values[i])));
    }
    MESSAGE("logits: largest difference ", worst);
    CHECK(worst <= named.golden_tolerance);
    check_hidden_states(named, encoder, golden, batch, model.config, HeadKind::sequence);

    auto device_labels = backend.allocate(size_t(b) * sizeof(int32_t));
    backend.upload(device_labels.get(), labels.data(), labels.size() * sizeof(int32_t));
    Arena losses(backend, b);
    backend.cross_entropy(logits, static_cast<const int32_t*>(device_labels.get()), {}, 0,
                          1.0f / float(b), vector(losses.data(), b), logits);
    double loss = 0;
    for (float value : losses.values()) loss += double(value) / double(b);
    MESSAGE("loss: difference ", loss - golden.at("loss").values[0]);
    CHECK(std::abs(loss - golden.at("loss").values[0]) <= named.golden_tolerance);
    encoder.backward(device, weights.data(), gradients.data(), logits, nullptr);
    check_gradients(model, golden, gradients.values());
  }
}

void check_answers(const std::string& forward, const std::string& name, size_t left_out = 0,
                   std::string_view cancelling = {}, double zeros = 1) {
  if (!have_shared("golden/" + forward)) return;
  Golden golden = read_golden(shared_path("golden/" + forward));
  GoldenModel model = load_model(name, {HeadKind::token, 2});
  PackedBatch batch = pack(real_sequences(golden));
  const int64_t b = batch.sequences();
  std::vector<int32_t> spans;
  for (const char* name : {"in.start_positions", "in.end_positions"}) {
    for (int64_t position : golden.at(name).integers) spans.push_back(int32_t(position));
  }
  for (const NamedBackend& named : model_backends()) {
    Backend& backend = *named.backend;
    INFO("backend ", named.name);
    MESSAGE("backend ", named.name);
    Arena weights(backend, model.weights), gradients(backend, model.table.size());
    Encoder encoder(backend, model.config, model.table);
    encoder.reserve(batch.tokens(), b, true);
    DeviceBatch device(backend, batch.tokens(), b);
    device.upload(batch);
    Tensor logits = encoder.forward(device, weights.data(), nullptr, true);
    std::vector<float> values = download(backend, logits), starts, ends;
    for (size_t i = 0; i < values.size(); i += 2) {
      starts.push_back(values[i]);
      ends.push_back(values[i + 1]);
    }
    double worst = std::max(padded_difference(starts, golden.at("start_logits"), batch, 1, false),
                            padded_difference(ends, golden.at("end_logits"), batch, 1, false));
    MESSAGE("logits: largest difference ", worst);
    CHECK(worst <= named.golden_tolerance);
    check_hidden_states(named, encoder, golden, batch, model.config, HeadKind::token);

    auto device_spans = backend.allocate(spans.size() * sizeof(int32_t));
    backend.upload(device_spans.get(), spans.data(), spans.size() * sizeof(int32_t));
    const int32_t* start = static_cast<const int32_t*>(device_spans.get());
    Arena losses(backend, b);
    backend.span_cross_entropy(logits, device.segments(), start, start + b, 1.0f / float(b),
                               vector(losses.data(), b), logits);
    double loss = 0;
    for (float value : losses.values()) loss += double(value) / double(b);
    MESSAGE("loss: difference ", loss - golden.at("loss").values[0]);
    CHECK(std::abs(loss - golden.at("loss").values[0]) <= named.golden_tolerance);
    encoder.backward(device, weights.data(), gradients.data(), logits, nullptr);
    check_gradients(model, golden, gradients.values(), left_out, cancelling, zeros);
  }
}

// The logits of masked words; gradients of the head and of the word embedding that is its decoder.
// `tolerances`: how many of a backend's the logits may differ.
// `in_file`: parameters whose gradients the file has, the head's and the word embedding's.
void check_masked(const std::string& forward, const std::string& name, double tolerances = 1,
                  size_t in_file = 6) {
  if (!have_shared("golden/" + forward)) return;
  Golden golden = read_golden(shared_path("golden/" + forward));
  const int64_t words = golden.at("logits").shape[1];
  GoldenModel model = load_model(name, {HeadKind::masked, words});
  PackedBatch batch = pack(real_sequences(golden));
  const GoldenTensor& labels = golden.at("in.labels");
  const GoldenTensor& mask = golden.at("in.attention_mask");
  int32_t token = 0;
  for (size_t i = 0; i < labels.integers.size(); ++i) {
    if (mask.integers[i] == 0) continue;
    if (labels.integers[i] >= 0) {
      batch.scored.push_back(token);
      batch.targets.push_back(int32_t(labels.integers[i]));
    }
    ++token;
  }
  const int64_t m = int64_t(batch.scored.size());
  REQUIRE(m == golden.at("logits").shape[0]);
  for (const NamedBackend& named : model_backends()) {
    Backend& backend = *named.backend;
    INFO("backend ", named.name);
    Arena weights(backend, model.weights), gradients(backend, model.table.size());
    Encoder encoder(backend, model.config, model.table);
    encoder.reserve(batch.tokens(), batch.sequences(), true);
    DeviceBatch device(backend, batch.tokens(), batch.sequences());
    device.upload(batch, 1.0f / float(m));
    Tensor logits = encoder.forward(device, weights.data(), nullptr, true);
    std::vector<float> values = download(backend, logits);
    double worst = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      worst = std::max(worst, double(std::abs(values[i] - golden.at("logits").values[i])));
    }
    MESSAGE("logits: largest difference ", worst);
    CHECK(worst <= tolerances * named.golden_tolerance);
    check_hidden_states(named, encoder, golden, batch, model.config, HeadKind::masked);
    Arena losses(backend, m);
    backend.cross_entropy(logits, device.targets(), {}, 0, device.scored_loss_scale(),
                          vector(losses.data(), m), logits);
    double loss = 0;
    for (float value : losses.values()) loss += double(value) / double(m);
    CHECK(std::abs(loss - golden.at("loss").values[0]) <= named.golden_tolerance);
    encoder.backward(device, weights.data(), gradients.data(), logits, nullptr);
    check_gradients(model, golden, gradients.values(), model.table.parameters().size() - in_file);
  }
}

// The classifier of an architecture of the family, and its head for answers.
void check_family(const std::string& name, std::string_view cancelling = {}, double zeros = 1) {
  const std::string folder = concat("family/", name, "/");
  check_classification(folder + "forward-classification.safetensors", folder + "classification",
                       20);
  constexpr size_t kLeftOut = 1;  // the word embedding
  check_answers(folder + "forward-qa.safetensors", folder + "qa", kLeftOut, cancelling, zeros);
}

void check_decay(const std::string& name, bool answers = true) {
  for (const auto& [task, head] :
       {std::pair("classification", Head{HeadKind::sequence, 20}), {"qa", {HeadKind::token, 2}}}) {
    if (head.kind == HeadKind::token && !answers) continue;
    INFO(name);
    const std::string folder = concat("golden/family/", name, "/");
    if (!have_shared(folder + task)) return;
    const GoldenModel model = load_model(concat("family/", name, "/", task), head);
    std::vector<std::string> found, expected;
    for (const Parameter& p : model.table.parameters()) {
      if (!p.decay) found.push_back(p.name);
    }
    std::sort(found.begin(), found.end());
    simdjson::dom::parser parser;
    const std::string path = shared_path(folder + "trajectory-" + task + ".json").string();
    for (std::string_view name : parser.load(path)["no_decay"].get_array()) {
      expected.emplace_back(name);
    }
    CHECK(found == expected);
  }
}

}  // namespace

TEST_CASE("golden classification: logits, hidden states, loss, gradients") {
  check_classification("forward-classification.safetensors", "tiny-bert-classification", 24);
}

TEST_CASE("golden question answering: logits, hidden states, loss, gradients") {
  check_answers("forward-qa.safetensors", "tiny-bert-qa");
}

TEST_CASE("golden DistilBERT: logits, hidden states, loss, gradients of its three heads") {
  check_family("distilbert");
  check_masked("family/distilbert/forward-mlm.safetensors", "family/distilbert/mlm");
}

TEST_CASE("golden RoBERTa: logits, hidden states, loss, gradients of its three heads") {
  // In single precision transformers differs by 9e-6 there (SDPA), and by 7e-7 in masked logits.
  check_family("roberta", "roberta.encoder.layer.1.attention.self.query.bias");
  check_masked("family/roberta/forward-mlm.safetensors", "family/roberta/mlm", 2);
}

TEST_CASE("golden XLM-RoBERTa: logits, hidden states, loss, gradients of its three heads") {
  // The probabilities that cancel in the bias of the answers' head are rounded, too: 7.8e-8.
  check_family("xlm-roberta", {}, 2);
  check_masked("family/xlm-roberta/forward-mlm.safetensors", "family/xlm-roberta/mlm");
}

TEST_CASE("golden CamemBERT: logits, hidden states, loss, gradients of its classifier") {
  check_classification("family/camembert/forward-classification.safetensors",
                       "family/camembert/classification", 20);
}

TEST_CASE("golden ELECTRA: logits, hidden states, loss, gradients of its three heads") {
  check_family("electra", {}, 2);  // 6.3e-8 in the bias of the answers' head
  check_masked("family/electra/forward-mlm.safetensors", "family/electra/mlm");
}

TEST_CASE("golden ALBERT: logits, hidden states, loss, gradients of its three heads") {
  check_family("albert");
  check_masked("family/albert/forward-mlm.safetensors", "family/albert/mlm", 2);  // 1.2e-6
  // Of two groups of two layers.
  check_classification("family/albert-groups/forward-classification.safetensors",
                       "family/albert-groups/classification", 20);
}

TEST_CASE("golden ModernBERT: logits, hidden states, loss, gradients of its three heads") {
  check_family("modernbert");
  check_masked("family/modernbert/forward-mlm.safetensors", "family/modernbert/mlm", 1, 4);
}

TEST_CASE("golden ModernBERT with biases and the mean of tokens: classifier") {
  check_classification("family/modernbert-mean/forward-classification.safetensors",
                       "family/modernbert-mean/classification", 20);
}

TEST_CASE("golden MPNet: logits, hidden states, loss, gradients of its three heads") {
  check_family("mpnet");
  check_masked("family/mpnet/forward-mlm.safetensors", "family/mpnet/mlm");
}

TEST_CASE("golden nomic_bert: logits, hidden states, loss, gradients of its three heads") {
  check_family("nomic_bert");
  check_masked("family/nomic_bert/forward-mlm.safetensors", "family/nomic_bert/mlm");
}

TEST_CASE("golden DeBERTa: logits, hidden states, loss, gradients of its three heads") {
  check_family("deberta-v3");
  check_masked("family/deberta-v3/forward-mlm.safetensors", "family/deberta-v3/mlm", 2);  // 1.01e-6
  // With a convolution, positions, types, and weights of their own for the table.
  check_classification("family/deberta-v2-conv/forward-classification.safetensors",
                       "family/deberta-v2-conv/classification", 20);
  check_masked("family/deberta-v2-conv/forward-mlm.safetensors", "family/deberta-v2-conv/mlm");
}

TEST_CASE("golden family: Trainer's parameters without weight decay") {
  for (const char* name : {"albert", "deberta-v3", "distilbert", "electra", "modernbert", "mpnet",
                           "nomic_bert", "roberta", "xlm-roberta"}) {
    check_decay(name);
  }
  check_decay("modernbert-mean", false);
  check_decay("deberta-v2-conv", false);
}

}  // namespace finetune::test
