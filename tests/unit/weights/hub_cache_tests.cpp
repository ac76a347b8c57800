// Hugging Face's cache: where it is, which snapshot an id means, what is said of one that is
// absent.
#include <doctest/doctest.h>

#include <cstdlib>

#include "../contains.h"
#include "unit/weights/weights_test.h"
#include "weights/hub_cache.h"
#include "weights/model_directory.h"

using namespace finetune;
using namespace finetune::test;

namespace {

constexpr const char* kCommit = "86b5e0934494bd15c9632b12f734a8a67f723594";

// The variables that locate the cache, restored at the end.
class Environment {
 public:
  Environment() {
    for (const char* name : kNames) {
      const char* value = std::getenv(name);
      before_.push_back(value ? std::optional<std::string>(value) : std::nullopt);
      ::unsetenv(name);
    }
  }
  ~Environment() {
    for (size_t i = 0; i < before_.size(); ++i) {
      before_[i] ? ::setenv(kNames[i], before_[i]->c_str(), 1) : ::unsetenv(kNames[i]);
    }
  }
  void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

 private:
  static constexpr const char* kNames[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                           "XDG_CACHE_HOME", "HOME"};
  std::vector<std::optional<std::string>> before_;
};

// A snapshot in huggingface_hub's layout: links to blobs.
fs::path add_snapshot(const fs::path& cache, const std::string& folder,
                      const std::vector<std::string>& files, const std::string& commit = kCommit) {
  const fs::path snapshot = cache / folder / "snapshots" / commit;
  fs::create_directories(snapshot);
  fs::create_directories(cache / folder / "blobs");
  for (const std::string& file : files) {
    write_bytes(cache / folder / "blobs" / file, "x");
    fs::create_symlink("../../blobs/" + file, snapshot / file);
  }
  return snapshot;
}

void point(const fs::path& cache, const std::string& folder, const std::string& reference,
           const std::string& commit = kCommit) {
  const fs::path file = cache / folder / "refs" / reference;
  fs::create_directories(file.parent_path());
  write_bytes(file, commit);
}

std::string hub_refusal(const std::string& model) {
  return error_line(ExitCode::model, [&] { find_model(model_path(model)); });
}

}  // namespace

TEST_CASE("what may be an id on the hub") {
  for (const char* id : {"bert-base-uncased", "google-bert/bert-base-uncased", "org/a.b_c", "x"}) {
    REQUIRE(hub_name(id));
    CHECK(hub_name(id)->id == id);
    CHECK(hub_name(id)->revision == "main");
  }
  const auto named = hub_name("org/model@refs/pr/1");
  REQUIRE(named);
  CHECK(named->id == "org/model");
  CHECK(named->revision == "refs/pr/1");
  for (const char* other :
       {"", "a/b/c", "./a", "../a", "/a", "a/", "-a", "a-", "a--b", "a..b", "a b", "a@", "a@../b",
        "a@b//c", "model.safetensors", "runs/bert.ckpt", "org/x.git", "a/.hidden"}) {
    CAPTURE(other);
    CHECK(!hub_name(other));
  }
  CHECK(!hub_name(std::string(97, 'a')));
}

TEST_CASE("the cache is where huggingface_hub has it") {
  Environment environment;
  environment.set("HOME", "/home/u");
  CHECK(hub_cache() == "/home/u/.cache/huggingface/hub");
  environment.set("XDG_CACHE_HOME", "/xdg");
  CHECK(hub_cache() == "/xdg/huggingface/hub");
  environment.set("HF_HOME", "~/hf");
  CHECK(hub_cache() == "/home/u/hf/hub");
  environment.set("HF_HOME", "${XDG_CACHE_HOME}/$ABSENT_VARIABLE/hf");
  CHECK(hub_cache() == "/xdg/$ABSENT_VARIABLE/hf/hub");
  environment.set("HUGGINGFACE_HUB_CACHE", "/older");
  CHECK(hub_cache() == "/older");
  environment.set("HF_HUB_CACHE", "~");
  CHECK(hub_cache() == "/home/u");
  environment.set("HF_HUB_CACHE", "");
  CHECK(hub_cache() == "/older");
  environment.set("HF_HUB_CACHE", "relative/");
  CHECK(hub_cache().is_absolute());
}

TEST_CASE("an id means the snapshot that its revision points to") {
  Environment environment;
  TemporaryDirectory directory;
  const fs::path cache = directory / "hub";
  environment.set("HF_HUB_CACHE", cache.string());
  const std::string other(40, 'b');
  const fs::path first =
      add_snapshot(cache, "models--org--m", {"config.json", "pytorch_model.bin"});
  const fs::path second = add_snapshot(cache, "models--org--m", {}, other);
  CHECK(model_path("org/m") == "org/m");  // nothing points to it yet
  CHECK(contains(hub_refusal("org/m"), std::string("only revision org/m@") + kCommit));
  point(cache, "models--org--m", "main");
  point(cache, "models--org--m", "refs/pr/2", other + "\n");
  CHECK(model_path("org/m") == first);
  CHECK(model_path("org/m@refs/pr/2") == second);
  CHECK(model_path("org/m@" + other) == second);
  CHECK(model_path("org/m@v2") == "org/m@v2");
  CHECK(find_model(model_path("org/m")).weights == first / "pytorch_model.bin");
  REQUIRE(hub_origin(first));
  CHECK(hub_origin(first)->id == "org/m");
  CHECK(hub_origin(first)->revision == kCommit);
  CHECK(hub_origin(first / "")->id == "org/m");
  CHECK(!hub_origin(directory.path()));
  point(cache, "models--org--m", "evil", "../../elsewhere");
  CHECK(model_path("org/m@evil") == "org/m@evil");
}

TEST_CASE("an absent model is told how to come by") {
  Environment environment;
  TemporaryDirectory directory;
  environment.set("HF_HUB_CACHE", (directory / "hub").string());
  const std::string files =
      " config.json tokenizer.json tokenizer_config.json 'vocab.*' merges.txt '*.model' "
      "model.safetensors";
  CHECK(contains(hub_refusal("bert-base-uncased"), "hf download bert-base-uncased" + files));
  CHECK(contains(hub_refusal("bert-base-uncased"), (directory / "hub").string()));
  CHECK(contains(hub_refusal("org/m@v2"), "hf download org/m --revision v2" + files));
  CHECK(!contains(hub_refusal("no/such/directory"), "hf download"));
  const std::string moved = hub_refusal("/old/hub/models--org--m/snapshots/0123");
  CHECK(contains(moved, "--model org/m@0123 is the same model"));
  CHECK(contains(moved, "hf download org/m --revision 0123" + files));
  CHECK(!contains(hub_refusal("model.safetensors"), "hf download"));
  add_snapshot(directory / "hub", "models--google-bert--bert-base-uncased", {});
  CHECK(contains(hub_refusal("bert-base-uncased"), "but google-bert/bert-base-uncased; give that"));
}

TEST_CASE("a snapshot that lacks files is told so") {
  Environment environment;
  TemporaryDirectory directory;
  const fs::path cache = directory / "hub";
  environment.set("HF_HUB_CACHE", cache.string());
  const fs::path snapshot = add_snapshot(cache, "models--m", {});
  point(cache, "models--m", "main");
  const std::string advice = concat("hf download m --revision ", kCommit, " config.json");
  CHECK(contains(hub_refusal("m"), "has neither config.json"));
  CHECK(contains(hub_refusal("m"), advice));
  write_bytes(snapshot / "config.json", "{}");
  CHECK(contains(hub_refusal("m"), "has no weights"));
  CHECK(contains(hub_refusal("m"), advice));
  fs::create_symlink("../../blobs/gone", snapshot / "model.safetensors");  // its blob was removed
  CHECK(contains(hub_refusal("m"), "has no weights"));
  // The cache is not mentioned for any other directory.
  TemporaryDirectory own;
  write_bytes(own / "config.json", "{}");
  CHECK(!contains(hub_refusal(own.path().string()), "hf download"));
}
