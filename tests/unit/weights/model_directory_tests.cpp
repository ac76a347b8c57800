// Which weights, config and checkpoints of a directory are used.
#include <doctest/doctest.h>

#include "../contains.h"
#include "unit/weights/weights_test.h"
#include "weights/model_directory.h"

using namespace finetune;
using namespace finetune::test;

namespace {

std::string find_refusal(const fs::path& path, bool need_weights = true) {
  return error_line(ExitCode::model, [&] { find_model(path, need_weights); });
}

}  // namespace

TEST_CASE("weights are taken in the documented order") {
  TemporaryDirectory directory;
  write_bytes(directory / "config.json", "{}");
  CHECK(contains(find_refusal(directory.path()), "has no weights; put one of"));
  CHECK(find_model(directory.path(), false).weights.empty());
  for (const char* name : {"model.ckpt-20.index", "bert_model.ckpt.index", "tf_model.h5",
                           "pytorch_model.bin.index.json", "pytorch_model.bin",
                           "model.safetensors.index.json", "model.safetensors"}) {
    write_bytes(directory / name, "x");
    CHECK(find_model(directory.path()).weights == directory / name);
  }
}

TEST_CASE("models of other kinds are told what to do") {
  TemporaryDirectory directory;
  write_bytes(directory / "model.onnx", "x");
  CHECK(contains(find_refusal(directory / "model.onnx"), "model.onnx: is an ONNX model"));
  CHECK(contains(find_refusal(directory.path()), "model.onnx: is an ONNX model"));
  write_bytes(directory / "config.json", "{}");
  CHECK(contains(find_refusal(directory.path()), "model.onnx: is an ONNX model"));
  write_bytes(directory / "weights.bin", "GGUF\x03");
  CHECK(contains(find_refusal(directory / "weights.bin"), "weights.bin: is a GGUF file"));
  CHECK(contains(find_refusal(directory / "absent.gguf"), "no such directory or file"));
  write_bytes(directory / "adapter_config.json", "{}");
  CHECK(contains(find_refusal(directory.path()), "is a PEFT adapter"));
  write_bytes(directory / "model.safetensors", "x");  // a whole model beside it
  CHECK(find_model(directory.path()).weights == directory / "model.safetensors");
}

TEST_CASE("a directory of runs is named as such, a sweep with its best run") {
  TemporaryDirectory directory;
  const fs::path sweep = directory / "sweep";
  for (const char* run : {"lr=1,seed=1", "lr=1,seed=2", "lr=2,seed=1"}) {
    fs::create_directories(sweep / run / "model");
    write_bytes(sweep / run / "model/config.json", "{}");
  }
  CHECK(contains(find_refusal(sweep), "sweep: is not a model; it holds 3 directories of models"));
  CHECK(contains(find_refusal(sweep), (sweep / "lr=1,seed=1").string() + ", ..."));
  const auto with_best = [&](const std::string& best) {
    write_bytes(sweep / "sweep.json",
                R"({"finetune_sweep":"0.1.0","runs":[],"best":)" + best + "}");
    return find_refusal(sweep);
  };
  const std::string best =
      R"({"run":"lr=1,seed=2","model":"moved","metric":"eval_loss","value":1})";
  CHECK(with_best(best) == sweep.string() +
                               ": is a sweep, not a model; its best run by 'eval_loss' is " +
                               (sweep / "lr=1,seed=2").string());
  for (const char* none : {"null", "[}", "{}", R"({"run":"lr=3","metric":"eval_loss"})"}) {
    CHECK(contains(with_best(none), "is a sweep, not a model; it holds 3 directories"));
  }
  fs::remove_all(sweep / "lr=1,seed=2");  // its model is gone
  CHECK(contains(with_best(best), "is a sweep, not a model; it holds 2 directories"));
  CHECK(contains(find_refusal(directory.path()),
                 "is not a model; it holds 1 directory of a model or run, name one of them: " +
                     sweep.string()));
}

TEST_CASE("several checkpoints are not guessed between") {
  TemporaryDirectory directory;
  write_bytes(directory / "config.json", "{}");
  write_bytes(directory / "model.ckpt-20.index", "x");
  write_bytes(directory / "model.ckpt-40.index", "x");
  CHECK(contains(find_refusal(directory.path()), "several TensorFlow checkpoints"));
  CHECK(find_model(directory / "model.ckpt-20").weights == directory / "model.ckpt-20.index");
}

TEST_CASE("a run's directory, a weight file, Google's config") {
  TemporaryDirectory directory;
  CHECK(contains(find_refusal(directory.path()), "neither config.json nor"));
  CHECK(contains(find_refusal(directory / "absent"), "no such directory"));
  fs::create_directories(directory / "model");
  write_bytes(directory / "model/bert_config.json", "{}");
  write_bytes(directory / "model/model.safetensors", "x");
  ModelDirectory run = find_model(directory.path());
  CHECK(run.directory == directory / "model");
  CHECK(run.config == directory / "model/bert_config.json");
  CHECK(run.weights == directory / "model/model.safetensors");
  write_bytes(directory / "model/config.json", "{}");
  write_bytes(directory / "model/other.bin", "x");
  ModelDirectory file = find_model(directory / "model/other.bin");
  CHECK(file.config == directory / "model/config.json");
  CHECK(file.weights == directory / "model/other.bin");
  write_bytes(directory / "model/vocab.txt", "x");
  CHECK(find_tokenizer_files(directory / "model") ==
        std::vector<fs::path>{directory / "model/vocab.txt"});
}
