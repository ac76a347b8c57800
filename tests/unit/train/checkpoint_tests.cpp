#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "../contains.h"
#include "core/error.h"
#include "core/files.h"
#include "core/philox.h"
#include "temporary_directory.h"
#include "train/checkpoint.h"
#include "train/checkpoint_store.h"
#include "train/hdf5_store.h"

using namespace finetune;
using finetune::test::contains;

namespace {

BertConfig tiny_config() {
  BertConfig config;
  config.vocab_size = 50;
  config.hidden_size = 16;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.intermediate_size = 32;
  config.max_position_embeddings = 8;
  return config;
}

// Arenas of a tiny model, filled with every kind of bit pattern; gaps are zero as in a run.
struct Sample {
  ParameterTable table{tiny_config(), Head{HeadKind::sequence, 3}};
  std::vector<float> weights, m, v;

  explicit Sample(uint32_t seed) : weights(size_t(table.size())), m(weights), v(weights) {
    fill(weights, seed, 1);
    fill(m, seed, 2);
    fill(v, seed, 3);
  }
  void fill(std::vector<float>& arena, uint32_t seed, uint32_t which) {
    for (const auto& parameter : table.parameters()) {
      for (int64_t i = parameter.offset; i < parameter.offset + parameter.size(); ++i) {
        uint32_t bits = philox({seed, which}, {uint32_t(i), 0, 0, 0})[0];
        std::memcpy(&arena[size_t(i)], &bits, sizeof bits);
      }
    }
  }
  CheckpointArenas arenas() { return {weights.data(), m.data(), v.data()}; }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

CheckpointState sample_state(int64_t step) {
  CheckpointState state;
  state.step = step;
  state.epoch = 2;
  state.step_in_epoch = 7;
  state.totals = {{"loss", 1e300}, {"seconds", 12.5}, {"tokens", 123456789.0}};
  state.best_value = 1.0 / 3.0;
  state.best_step = 50;
  state.evaluations_without_improvement = 1;
  state.options = "# options\nlr = 5e-05\ntext-column = [\"a\", \"Ünï\"]\n";
  state.labels = {"", "Café & bar", "x"};
  state.data_sha256 = std::string(64, 'a');
  state.model_sha256 = std::string(64, 'b');
  state.version = "0.1.0";
  state.code_path = "CPU, AVX2, fp32";
  return state;
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
}

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// The message of the one-line Error(model) that reading gives; empty if it is accepted.
std::string refusal(const fs::path& path) {
  try {
    read_checkpoint_state(path);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::model);
    std::string message = error.what();
    CHECK(message.find(path.string()) == 0);
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return "";
}

size_t entries(const fs::path& directory) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a checkpoint gives back every bit") {
  test::TemporaryDirectory directory;
  Sample written(1);
  CheckpointState state = sample_state(100);
  fs::path path = checkpoint_path(directory.path(), 100);
  CHECK(path.filename() == "step-00000100.h5");
  write_checkpoint(path, state, written.table, written.arenas());
  CHECK(entries(directory.path()) == 1);

  Sample read(2);
  check_equal(read_checkpoint(path, read.table, read.arenas()), state);
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

TEST_CASE("tensors larger than a slab come and go in slabs of whole rows, in one order") {
  // Elements of the arenas, none of which exists as a whole: value i of arena a is 3 * i + a.
  struct Stream final : CheckpointMemory {
    std::vector<float> staging;
    std::vector<IndexRange> written, read;
    int64_t wrong = 0;

    static float value(Arena arena, int64_t i) { return float((3 * i + int64_t(arena)) % 9999991); }
    bool has(Arena) const override { return true; }
    const float* contents(Arena arena, IndexRange range) override {
      written.push_back(range);
      staging.resize(size_t(range.size()));
      for (int64_t i = 0; i < range.size(); ++i) staging[size_t(i)] = value(arena, range.begin + i);
      return staging.data();
    }
    float* room(Arena, IndexRange range) override {
      staging.assign(size_t(range.size()), -1.0f);
      return staging.data();
    }
    void filled(Arena arena, IndexRange range, const float* data) override {
      read.push_back(range);
      for (int64_t i = 0; i < range.size(); ++i) wrong += data[i] != value(arena, range.begin + i);
    }
  };
  test::TemporaryDirectory directory;
  BertConfig config = tiny_config();
  config.vocab_size = 600000;  // rows of 16: two slabs and a part
  const ParameterTable table(config, Head{HeadKind::sequence, 3});
  const int64_t slab = checkpoint_rows({600000, 16}) * 16;
  Stream stream;
  const fs::path path = directory / "step-00000001.h5";
  write_checkpoint(path, sample_state(1), table, stream);
  CHECK(stream.written.size() == 3 * (table.parameters().size() + 2));
  int64_t elements = 0;
  for (IndexRange range : stream.written) {
    CHECK(range.size() <= slab);
    elements += range.size();
  }
  CHECK(elements == 3 * table.count());
  read_checkpoint(path, table, stream);
  CHECK(stream.wrong == 0);
  CHECK((stream.read == stream.written));
}

TEST_CASE("a row that is larger than a slab is a slab") {
  CHECK(checkpoint_rows({3, int64_t{1} << 40}) == 1);
  CHECK(checkpoint_rows({5}) >= 5);
  test::TemporaryDirectory directory;
  const std::vector<int64_t> shape = {3, checkpoint_rows({1}) / 2 + 1};  // one row a slab
  std::vector<float> data(size_t(shape[0] * shape[1]));
  for (size_t i = 0; i < data.size(); ++i) data[i] = float(i);
  {
    Hdf5Store file = Hdf5Store::create(directory / "a.h5", 0);
    file.write_floats("/x", shape,
                      [&](int64_t first, int64_t) { return &data[size_t(first * shape[1])]; });
    file.close();
  }
  std::vector<float> back(data.size(), -1.0f);
  Hdf5Store::open(directory / "a.h5")
      .read_floats(
          "/x", shape, [&](int64_t first, int64_t) { return &back[size_t(first * shape[1])]; },
          [&](int64_t, int64_t count, const float*) { CHECK(count == 1); });
  CHECK(same_bits(back, data));
}

TEST_CASE("a run that was never evaluated has no best value") {
  test::TemporaryDirectory directory;
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
  test::TemporaryDirectory directory;
  Sample first(1), second(2);
  fs::path path = directory / "step-00000001.h5";
  write_checkpoint(path, sample_state(1), first.table, first.arenas());
  std::string bytes = read_text_file(path);
  write_checkpoint(path, sample_state(1), first.table, second.arenas());
  CHECK((read_text_file(path) != bytes));
  ::sleep(1);  // no time stamp may be in it
  write_checkpoint(path, sample_state(1), first.table, first.arenas());
  CHECK((read_text_file(path) == bytes));
}

TEST_CASE("every damaged byte and every missing one is noticed") {
  test::TemporaryDirectory directory;
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
  test::TemporaryDirectory directory;
  Sample sample(1);
  fs::path path = directory / "step-00000001.h5";
  write_checkpoint(path, sample_state(1), sample.table, sample.arenas());
  ParameterTable other(tiny_config(), Head{HeadKind::sequence, 4});
  std::vector<float> weights(size_t(other.size()));
  std::string message;
  try {
    read_checkpoint(path, other, {weights.data(), nullptr, nullptr});
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK(contains(message, "classifier."));
  CHECK(contains(message, "(3"));
  CHECK(contains(message, "(4"));
}

TEST_CASE("the newest whole checkpoint is found behind damaged ones") {
  test::TemporaryDirectory directory;
  Sample sample(1);
  CHECK(find_checkpoints(directory / "absent").empty());
  CHECK(!newest_valid_checkpoint(directory.path()));
  for (int64_t step : {30, 10, 20, 123456789}) {
    write_checkpoint(checkpoint_path(directory.path(), step), sample_state(step), sample.table,
                     sample.arenas());
  }
  write_bytes(directory / "notes.h5", "not ours");
  write_bytes(directory / "step-00000099.h5.tmp.1", "killed while it was written");
  auto files = find_checkpoints(directory.path());
  REQUIRE(files.size() == 4);
  CHECK(files[0].step == 10);
  CHECK(files[3].step == 123456789);
  CHECK(newest_valid_checkpoint(directory.path())->file.step == 123456789);

  fs::resize_file(files[3].path, fs::file_size(files[3].path) / 2);
  std::string bytes = read_text_file(files[2].path);
  bytes[bytes.size() / 2] = char(bytes[bytes.size() / 2] ^ 64);
  write_bytes(files[2].path, bytes);
  CHECK(newest_valid_checkpoint(directory.path())->file.step == 20);
  // A copy under another step's name would continue at the wrong place.
  fs::copy_file(files[0].path, files[1].path, fs::copy_options::overwrite_existing);
  CHECK(newest_valid_checkpoint(directory.path())->file.step == 10);
  write_bytes(files[0].path, "");
  CHECK(!newest_valid_checkpoint(directory.path()));
}

TEST_CASE("pruning keeps the newest and the best, and strangers' files") {
  test::TemporaryDirectory directory;
  auto touch = [&](const std::string& name) { write_bytes(directory / name, "x"); };
  for (int64_t step = 10; step <= 60; step += 10) {
    touch(checkpoint_path("", step).string());
  }
  touch("step-00000030.h5.tmp.77");
  touch("notes.txt");
  touch("step-final.h5");
  prune_checkpoints(directory.path(), 50, 2, 20);
  auto steps = [&] {
    std::vector<int64_t> out;
    for (const auto& file : find_checkpoints(directory.path())) out.push_back(file.step);
    return out;
  };
  CHECK(steps() == std::vector<int64_t>{20, 40, 50});
  CHECK(!fs::exists(directory / "step-00000030.h5.tmp.77"));
  CHECK(fs::exists(directory / "notes.txt"));
  CHECK(fs::exists(directory / "step-final.h5"));
  prune_checkpoints(directory.path(), 50, 0, -1);
  CHECK(steps() == std::vector<int64_t>{50});
}

TEST_CASE("two processes that write the same checkpoint leave a whole one") {
  test::TemporaryDirectory directory;
  Sample sample(1);
  fs::path path = directory / "step-00000001.h5";
  pid_t child = fork();
  if (child == 0) {
    int status = 0;
    try {
      for (int i = 0; i < 20; ++i) {
        write_checkpoint(path, sample_state(1), sample.table, sample.arenas());
      }
    } catch (...) {
      status = 1;
    }
    _exit(status);
  }
  for (int i = 0; i < 20; ++i) {
    write_checkpoint(path, sample_state(1), sample.table, sample.arenas());
    CHECK(refusal(path) == "");
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(entries(directory.path()) == 1);
}

TEST_CASE("a writer killed at any moment leaves only whole checkpoints") {
  test::TemporaryDirectory directory;
  Sample sample(1);
  int killed_with_some = 0;
  for (int round = 0; round < 12; ++round) {
    pid_t child = fork();
    if (child == 0) {
      for (int64_t step = round * 1000;; ++step) {
        write_checkpoint(checkpoint_path(directory.path(), step), sample_state(step), sample.table,
                         sample.arenas());
        prune_checkpoints(directory.path(), step, 3, -1);
      }
    }
    ::usleep(useconds_t(3000 + 7919 * round));
    ::kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    auto files = find_checkpoints(directory.path());
    for (const auto& file : files) {
      CAPTURE(file.path.string());
      CHECK(refusal(file.path) == "");
    }
    killed_with_some += files.empty() ? 0 : 1;
  }
  CHECK(killed_with_some > 0);
}

TEST_CASE("a full disk leaves the checkpoints as they were") {
  test::TemporaryDirectory directory;
  if (::geteuid() != 0 ||
      ::mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=1600k") != 0) {
    std::printf("SKIPPED: a small tmpfs cannot be mounted here\n");
    return;
  }
  Sample sample(1);
  fs::path first = checkpoint_path(directory.path(), 1);
  std::string message;
  int code = 0;
  int64_t step = 1;
  try {
    for (; step < 20; ++step) {
      write_checkpoint(checkpoint_path(directory.path(), step), sample_state(step), sample.table,
                       sample.arenas());
    }
  } catch (const Error& error) {
    message = error.what();
    code = int(error.code());
  }
  CHECK(step > 1);
  CHECK(code == int(ExitCode::model));
  CHECK(contains(message, "MiB"));
  CHECK(entries(directory.path()) == size_t(step - 1));
  CHECK(newest_valid_checkpoint(directory.path())->file.step == step - 1);
  // Once there is room again, writing works.
  fs::remove(first);
  write_checkpoint(checkpoint_path(directory.path(), step), sample_state(step), sample.table,
                   sample.arenas());
  CHECK(newest_valid_checkpoint(directory.path())->file.step == step);
  ::umount2(directory.path().c_str(), MNT_DETACH);
}
