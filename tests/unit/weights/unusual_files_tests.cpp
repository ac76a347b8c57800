// Weights truncated while they are read, pipes and devices instead of files, invalid names.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>

#include "../contains.h"
#include "unit/shared.h"
#include "unit/weights/weights_test.h"
#include "weights/model_directory.h"

using namespace finetune;
using namespace finetune::test;

namespace {

void copy_writable(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    write_bytes(to / entry.path().filename(), read_bytes(entry.path()));
  }
}

// The error of reading all tensors.
std::vector<std::string> faults_of(const WeightSource& source) {
  std::vector<std::string> faults;
  for (const WeightInfo& info : source.tensors()) {
    const std::string fault = error_line(ExitCode::model, [&] { values_of(source, info); });
    if (!fault.empty()) faults.push_back(fault);
  }
  return faults;
}

// A directory with a config, and a shard index whose one tensor is in `shard`.
void write_index(const fs::path& directory, std::string_view shard) {
  write_bytes(directory / "config.json", "{}");
  write_bytes(directory / "model.safetensors.index.json",
              concat(R"({"weight_map":{"a":")", shard, "\"}}"));
}

}  // namespace

TEST_CASE("weights that are cut while they are read") {
  if (!have_shared("golden/formats")) return;
  TemporaryDirectory directory;
  for (const char* format : {"safetensors-bf16", "safetensors-sharded", "pytorch-zip",
                             "pytorch-legacy", "tensorflow-1-checkpoint"}) {
    CAPTURE(format);
    const fs::path model = directory / format;
    copy_writable(shared_path(concat("golden/formats/", format)), model);
    const auto source = open_weights(model);
    CHECK(faults_of(*source).empty());
    const fs::path last = source->files().back();
    fs::resize_file(last, fs::file_size(last) / 2);
    const std::vector<std::string> faults = faults_of(*source);
    CHECK(!faults.empty());
    for (const std::string& fault : faults) {
      CHECK(fault.starts_with(last.string() + ": became shorter while it was read"));
    }
  }
}

TEST_CASE("pipes and devices in place of weights are refused at once") {
  TemporaryDirectory directory;
  const fs::path pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  write_bytes(directory / "x.ckpt.index", "x");
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "weights.bin",
                           "tf_model.h5", "model.ckpt.index"}) {
    CAPTURE(name);
    const fs::path path = directory / name;
    fs::create_symlink(pipe, path);
    CHECK(refusal(path) == path.string() + ": is a pipe, a file is needed");
    fs::remove(path);
    fs::create_symlink("/dev/zero", path);
    CHECK(refusal(path) == path.string() + ": is a device, a file is needed");
    fs::remove(path);
  }
  write_index(directory.path(), "pipe");
  CHECK(refusal(directory / "model.safetensors.index.json") ==
        pipe.string() + ": is a pipe, a file is needed");
}

TEST_CASE("a pipe stands for the file whose name it has") {
  TemporaryDirectory directory;
  write_bytes(directory / "config.json", "{}");
  write_bytes(directory / "pytorch_model.bin", "x");
  REQUIRE(::mkfifo((directory / "model.safetensors").c_str(), 0600) == 0);
  CHECK(find_model(directory.path()).weights == directory / "model.safetensors");
  fs::remove(directory / "model.safetensors");
  fs::create_directory(directory / "model.safetensors");
  CHECK(find_model(directory.path()).weights == directory / "pytorch_model.bin");
}

TEST_CASE("shards with names that no file has") {
  TemporaryDirectory directory;
  const fs::path index = directory / "model.safetensors.index.json";
  for (size_t length : {256, 5000, 100'000}) {
    write_index(directory.path(), std::string(length, 'n'));
    const std::string message = refusal(index);
    CHECK(contains(message, concat("…' has a name of ", length, " bytes, which no shard has")));
    CHECK(message.size() < 500);
  }
  write_index(directory.path(), R"(a\u001b[31m\nb)");
  CHECK(refusal(index) ==
        index.string() +
            R"(: shard 'a\x1b[31m\nb' has control bytes in its name, which no shard has)");
  write_index(directory.path(), R"(a\u0000b)");
  CHECK(contains(refusal(index), R"('a\x00b' has control bytes)"));
}

TEST_CASE("links in a circle") {
  TemporaryDirectory directory;
  const std::string circle = ": Too many levels of symbolic links";
  fs::create_symlink("loop", directory / "loop");
  CHECK(refusal(directory / "loop") == (directory / "loop").string() + circle);
  write_index(directory.path(), "loop");
  CHECK(refusal(directory.path()) == (directory / "loop").string() + circle);
  fs::create_symlink("model.safetensors", directory / "model.safetensors");
  CHECK(refusal(directory.path()) == (directory / "model.safetensors").string() + circle);
}
