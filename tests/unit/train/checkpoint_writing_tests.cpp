// Failures while a checkpoint is written: at every tensor, in a process that continues.
#include <signal.h>
#include <sys/resource.h>

#include "../contains.h"
#include "checkpoint_fixture.h"
#include "temporary_directory.h"
#include "train/checkpoint/checkpoint_contents.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/checkpoint/hdf5_writer.h"
#include "train/checkpoint/sealed_file.h"
#include "weights/tensorflow/crc32c.h"

using namespace finetune;
using namespace finetune::test;

namespace {

// While it exists and is on, every write to a file fails.
class FullDisk {
 public:
  FullDisk() : handler_(::signal(SIGXFSZ, SIG_IGN)) { ::getrlimit(RLIMIT_FSIZE, &before_); }
  ~FullDisk() {
    set(false);
    ::signal(SIGXFSZ, handler_);
  }
  void set(bool full) {
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, full ? &none : &before_);
  }

 private:
  sighandler_t handler_;
  rlimit before_{};
};

// Writing fails at this tensor and all later ones.
class FailingTensors final : public ModelTensors {
 public:
  FailingTensors(Sample& sample, int64_t failing)
      : ModelTensors(sample.table),
        tensors_(sample.table, sample.weights.data(), sample.m.data(), sample.v.data()),
        failing_(failing) {}
  bool has(Arena) const override { return true; }
  const float* contents(const TensorPiece& piece) override {
    disk_.set(calls_++ == failing_);
    return tensors_.contents(piece);
  }
  float* room(const TensorPiece&) override { return nullptr; }
  void filled(const TensorPiece&, const float*) override {}
  int64_t calls() const { return calls_; }

 private:
  ArenaTensors tensors_;
  int64_t failing_, calls_ = 0;
  FullDisk disk_;
};

}  // namespace

TEST_CASE("one write that fails is an error, whichever tensor it is of, and the next is whole") {
  TemporaryDirectory directory;
  Sample sample(1), read(2);
  const fs::path first = checkpoint_path(directory.path(), 1),
                 second = checkpoint_path(directory.path(), 2);
  write_checkpoint(first, sample_state(1), sample.table, sample.arenas());
  const std::string kept = read_text_file(first);
  const int64_t count = 3 * int64_t(sample.table.parameters().size());
  for (int64_t i = 0; i < count; ++i) {
    CAPTURE(i);
    FailingTensors tensors(sample, i);
    const std::string message =
        error_line(ExitCode::model, [&] { write_checkpoint(second, sample_state(2), tensors); });
    CHECK(message.starts_with(second.string() + ": cannot be written: File too large"));
    REQUIRE(entries(directory.path()) == 1);
  }
  CHECK((read_text_file(first) == kept));
  write_checkpoint(second, sample_state(2), sample.table, sample.arenas());
  CHECK(read_checkpoint(second, read.table, read.arenas()).step == 2);
  CHECK((read.weights == sample.weights ||
         std::memcmp(read.weights.data(), sample.weights.data(), sample.weights.size() * 4) == 0));
}

TEST_CASE("a failure while closing the file is an error") {
  TemporaryDirectory directory;
  const fs::path path = directory / "a.h5";
  FullDisk disk;
  const std::string message = error_line(ExitCode::model, [&] {
    Hdf5Writer file(path, 0);
    file.make_group("/totals");
    file.write_attribute("/totals", "loss", 1.5);  // kept in memory until the end
    disk.set(true);
    file.close();
  });
  disk.set(false);
  CHECK(message == path.string() + ": cannot be written: File too large");
  Hdf5Writer again(path, 0);
  again.make_group("/totals");
  again.write_attribute("/totals", "loss", 2.5);
  again.close();
  CHECK(CheckpointContents(path).read_double("/totals", "loss") == 2.5);
}

TEST_CASE("a file with other contents than intended gets no seal") {
  TemporaryDirectory directory;
  const fs::path path = directory / "a.h5";
  std::vector<float> a(70000), b(3);
  for (size_t i = 0; i < a.size(); ++i) a[i] = float(i);
  Hdf5Writer file(path, kSealBytes);
  file.write_floats("/a", {700, 100},
                    [&](int64_t first, int64_t) { return &a[size_t(first) * 100]; });
  file.write_floats("/b", {3}, [&](int64_t, int64_t) { return b.data(); });
  file.close();
  const auto sum = [](const std::vector<float>& data) {
    return parallel_crc32c(reinterpret_cast<const uint8_t*>(data.data()), data.size() * 4);
  };
  const auto refused = [&](const std::vector<WrittenTensor>& tensors) {
    return error_line(ExitCode::model,
                      [&] { CHECK(verified_seal(path, tensors) == seal_of(path)); });
  };
  const WrittenTensor good{"/a", {700, 100}, sum(a)}, small{"/b", {3}, sum(b)};
  CHECK(refused({good, small}) == "");
  CHECK(refused({small, good}) == "");
  a[69999] += 1;
  CHECK(contains(refused({{"/a", {700, 100}, sum(a)}, small}), "/a is not as written"));
  CHECK(contains(refused({good, {"/b", {3}, 0}}), "/b is not as written"));
  CHECK(contains(refused({good, {"/b", {4}, sum(b)}}), "/b has shape"));
  CHECK(contains(refused({good, {"/c", {3}, sum(b)}}), "has no '/c'"));
}
