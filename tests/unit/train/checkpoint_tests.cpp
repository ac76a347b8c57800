// Checkpoints restore every bit, and damage is always noticed.
#include <cmath>

#include "../contains.h"
#include "checkpoint_fixture.h"
#include "temporary_directory.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_contents.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/checkpoint/hdf5_writer.h"
#include "weights/stored_tensor.h"

using namespace finetune;
using namespace finetune::test;

namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void check_equal(const CheckpointState& a, const CheckpointState& b) {
  CHECK(a.step == b.step);
  CHECK(a.epoch == b.epoch);
  CHECK(a.step_in_epoch == b.step_in_epoch);
  CHECK(a.totals == b.totals);
  CHECK(a.best_value == b.best_value);
  CHECK(a.best_step == b.best_step);
  CHECK(a.evaluations_without_improvement == b.evaluations_without_improvement);
  CHECK(a.options == b.options);
  CHECK(a.labels == b.labels);
  CHECK(a.data_sha256 == b.data_sha256);
  CHECK(a.model_sha256 == b.model_sha256);
  CHECK(a.version == b.version);
  CHECK(a.code_path == b.code_path);
  CHECK(a.loss == b.loss);
}

}  // namespace

TEST_CASE("a checkpoint gives back every bit") {
  TemporaryDirectory directory;
  Sample written(1);
  CheckpointState state = sample_state(100);
  fs::path path = checkpoint_path(directory.path(), 100);
  CHECK(path.filename() == "step-00000100.h5");
  write_checkpoint(path, state, written.table, written.arenas());
  CHECK(entries(directory.path()) == 1);

  Sample read(2);
  check_equal(read_checkpoint(path, read.table, read.arenas()), state);
  state.loss = "named";  // an attribute that only some checkpoints have
  write_checkpoint(checkpoint_path(directory.path(), 101), state, written.table, written.arenas());
  check_equal(read_checkpoint_state(checkpoint_path(directory.path(), 101)), state);
  state.loss.clear();
  CHECK(same_bits(read.weights, written.weights));
  CHECK(same_bits(read.m, written.m));
  CHECK(same_bits(read.v, written.v));

  Sample weights_alone(3), before(3);
  read_checkpoint(path, read.table, {weights_alone.weights.data(), nullptr, nullptr});
  CHECK(same_bits(weights_alone.weights, written.weights));
  CHECK(same_bits(weights_alone.m, before.m));

  check_equal(read_checkpoint_state(path), state);
  auto tensors = checkpoint_tensors(path);
  CHECK(tensors.size() == 3 * written.table.parameters().size());
  bool found = false;
  for (const auto& tensor : tensors) {
    if (tensor.name != "m/bert.embeddings.word_embeddings.weight") continue;
    found = true;
    CHECK(tensor.shape == std::vector<int64_t>{50, 16});
  }
  CHECK(found);
}

TEST_CASE("tensors larger than a slab are read and written in slabs of whole rows, in one order") {
  // Tensors that never exist as a whole: element i of tensor t in arena a is 3 * i + 7 * t + a.
  struct Stream final : ModelTensors {
    std::vector<float> staging;
    std::vector<TensorPiece> written, read;
    int64_t wrong = 0;

    using ModelTensors::ModelTensors;
    static float value(const TensorPiece& piece, int64_t i) {
      const int64_t element = 3 * (piece.elements.begin + i) + 7 * piece.tensor;
      return float((element + int64_t(piece.arena)) % 9999991);
    }
    bool has(Arena) const override { return true; }
    const float* contents(const TensorPiece& piece) override {
      written.push_back(piece);
      staging.resize(size_t(piece.elements.size()));
      for (size_t i = 0; i < staging.size(); ++i) staging[i] = value(piece, int64_t(i));
      return staging.data();
    }
    float* room(const TensorPiece& piece) override {
      staging.assign(size_t(piece.elements.size()), -1.0f);
      return staging.data();
    }
    void filled(const TensorPiece& piece, const float* data) override {
      read.push_back(piece);
      for (int64_t i = 0; i < piece.elements.size(); ++i) wrong += data[i] != value(piece, i);
    }
  };
  TemporaryDirectory directory;
  EncoderConfig config = tiny_config();
  config.vocab_size = 600000;  // rows of 16: two slabs and a part
  const ParameterTable table(config, Head{HeadKind::sequence, 3});
  const int64_t slab = slab_rows({600000, 16}) * 16;
  Stream stream(table);
  const fs::path path = directory / "step-00000001.h5";
  write_checkpoint(path, sample_state(1), stream);
  CHECK(stream.written.size() == 3 * (table.parameters().size() + 2));
  int64_t elements = 0;
  for (const TensorPiece& piece : stream.written) {
    CHECK(piece.elements.size() <= slab);
    elements += piece.elements.size();
  }
  CHECK(elements == 3 * table.count());
  read_checkpoint(path, stream);
  CHECK(stream.wrong == 0);
  REQUIRE(stream.read.size() == stream.written.size());
  for (size_t i = 0; i < stream.read.size(); ++i) {
    const TensorPiece &read = stream.read[i], &written = stream.written[i];
    CHECK((read.arena == written.arena && read.tensor == written.tensor &&
           read.elements == written.elements));
  }
}

TEST_CASE("a row that is larger than a slab is a slab") {
  CHECK(slab_rows({3, int64_t{1} << 40}) == 1);
  CHECK(slab_rows({5}) >= 5);
  TemporaryDirectory directory;
  const std::vector<int64_t> shape = {3, slab_rows({1}) / 2 + 1};  // one row a slab
  std::vector<float> data(size_t(shape[0] * shape[1]));
  for (size_t i = 0; i < data.size(); ++i) data[i] = float(i);
  {
    Hdf5Writer file(directory / "a.h5", 0);
    file.write_floats("/x", shape,
                      [&](int64_t first, int64_t) { return &data[size_t(first * shape[1])]; });
    file.close();
  }
  std::vector<float> back(data.size(), -1.0f);
  CheckpointContents(directory / "a.h5")
      .read_floats(
          "/x", shape, [&](int64_t first, int64_t) { return &back[size_t(first * shape[1])]; },
          [&](int64_t, int64_t count, const float*) { CHECK(count == 1); });
  CHECK(same_bits(back, data));
}

TEST_CASE("a run that was never evaluated has no best value") {
  TemporaryDirectory directory;
  Sample sample(1);
  CheckpointState state;
  write_checkpoint(directory / "step-00000000.h5", state, sample.table, sample.arenas());
  CheckpointState read = read_checkpoint_state(directory / "step-00000000.h5");
  CHECK(std::isnan(read.best_value));
  CHECK(read.best_step == -1);
  CHECK(read.options == "");
  CHECK(read.labels.empty());
}

TEST_CASE("equal content gives equal bytes, and writing over a checkpoint replaces it whole") {
  TemporaryDirectory directory;
  Sample first(1), second(2);
  fs::path path = directory / "step-00000001.h5";
  write_checkpoint(path, sample_state(1), first.table, first.arenas());
  std::string bytes = read_text_file(path);
  write_checkpoint(path, sample_state(1), first.table, second.arenas());
  CHECK((read_text_file(path) != bytes));
  ::sleep(1);  // a time stamp would differ
  write_checkpoint(path, sample_state(1), first.table, first.arenas());
  CHECK((read_text_file(path) == bytes));
}

TEST_CASE("every damaged byte and every missing one is noticed") {
  TemporaryDirectory directory;
  Sample sample(1);
  fs::path good = directory / "good.h5", bad = directory / "bad.h5";
  write_checkpoint(good, sample_state(1), sample.table, sample.arenas());
  std::string bytes = read_text_file(good);
  REQUIRE(bytes.size() > 4096);
  CHECK(refusal(good) == "");

  // Every byte of the seal, the superblock and the first headers; then every 211th.
  for (size_t at = 0; at < bytes.size(); at += at < 1500 ? 1 : 211) {
    std::string damaged = bytes;
    damaged[at] = char(damaged[at] ^ (1 << (at % 8)));
    write_bytes(bad, damaged);
    CAPTURE(at);
    REQUIRE(refusal(bad) != "");
  }
  for (size_t length = 0; length < bytes.size(); length += length < 1100 ? 13 : 4999) {
    write_bytes(bad, bytes.substr(0, length));
    CAPTURE(length);
    REQUIRE(refusal(bad) != "");
  }
  write_bytes(bad, bytes.substr(0, bytes.size() - 1));
  CHECK(contains(refusal(bad), "cut short"));
  write_bytes(bad, bytes + '\0');
  CHECK(refusal(bad) != "");
  write_bytes(bad, std::string(bytes.size(), '\0'));
  CHECK(contains(refusal(bad), "not a checkpoint"));
  CHECK(contains(refusal(directory / "absent.h5"), "No such file"));
  CHECK(refusal(directory.path()) != "");
}

TEST_CASE("a checkpoint of another model names the tensor and both shapes") {
  TemporaryDirectory directory;
  Sample sample(1);
  fs::path path = directory / "step-00000001.h5";
  write_checkpoint(path, sample_state(1), sample.table, sample.arenas());
  ParameterTable other(tiny_config(), Head{HeadKind::sequence, 4});
  std::vector<float> weights(size_t(other.size()));
  const std::string message = error_line(ExitCode::model, [&] {
    read_checkpoint(path, other, {weights.data(), nullptr, nullptr});
  });
  CHECK(contains(message, "classifier."));
  CHECK(contains(message, "(3"));
  CHECK(contains(message, "(4"));
}
