// Weights in shards behind an index: safetensors and PyTorch's.
#include <doctest/doctest.h>

#include "../contains.h"
#include "unit/weights/torch_maker.h"
#include "unit/weights/weights_test.h"

using namespace finetune;
using namespace finetune::test;

namespace {

constexpr const char* kIndex = "pytorch_model.bin.index.json";

// Writes the index with this map of tensors to shards, and returns why the weights are refused.
std::string map_refusal(const TemporaryDirectory& directory, std::string_view map) {
  write_bytes(directory / kIndex,
              concat(R"({"metadata":{"total_size":16},"weight_map":)", map, "}"));
  return refusal(directory.path());
}

std::string float_tensor(const std::string& key) {
  return tensor(storage("FloatStorage", key, 4), 0, integer(4), integer(1));
}

// A shard with one tensor of four floats for each name.
std::string shard_of(const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const std::string& name : names) entries.emplace_back(name, float_tensor("0"));
  return zip_of({{"m/data.pkl", state_dict(entries)}, {"m/data/0", kFour}});
}

}  // namespace

TEST_CASE("shards") {
  TemporaryDirectory directory;
  std::vector<float> values = {1, 2, 3, 4};
  write_safetensors(directory / "one.safetensors", {{"a", {2}, values.data()}}, DType::f32);
  write_safetensors(directory / "two.safetensors", {{"b", {2}, &values[2]}}, DType::f32);
  fs::path index = directory / "model.safetensors.index.json";
  auto with_map = [&](std::string_view map) {
    write_bytes(index, concat(R"({"metadata":{"total_size":16},"weight_map":)", map, "}"));
    return refusal(index);
  };
  CHECK(with_map(R"({"a":"one.safetensors","b":"two.safetensors"})") == "");
  auto source = open_weights(directory.path());
  CHECK(values_of(*source, *source->find("b")) == std::vector<float>{3, 4});
  CHECK(source->files().size() == 3);
  CHECK(contains(with_map(R"({"a":"two.safetensors"})"), "is not in shard"));
  CHECK(contains(with_map(R"({"a":"three.safetensors"})"), "is missing"));
  for (std::string outside : {"../one.safetensors", "/etc/passwd", "x/../../a", ""}) {
    CHECK(with_map(concat(R"({"a":")", outside, "\"}")).find("is not a file of the index's") !=
          std::string::npos);
  }
  CHECK(contains(with_map("[]"), "has no object"));
  CHECK(contains(with_map(R"({"a":1})"), "is not a file name"));
  // Each name would be read again as a whole.
  fs::create_symlink("one.safetensors", directory / "link.safetensors");
  for (std::string alias : {"./two.safetensors", "link.safetensors"}) {
    const std::string map =
        concat(R"({"a":"one.safetensors","b":"two.safetensors","c":")", alias, "\"}");
    CHECK(contains(with_map(map), "under another name too"));
  }
}

TEST_CASE("PyTorch's shards are the file that was cut, zip or legacy") {
  const std::string turned =
      tensor(storage("FloatStorage", "0", 4), 0, integer(2) + integer(2), integer(1) + integer(2));
  const std::string halves = tensor(storage("HalfStorage", "1", 8), 1, integer(3), integer(1));
  const std::string eight = little(uint64_t{0x4400420040003C00}) + little(uint64_t{0x48004700});
  // Tied: PyTorch keeps both names, in one shard and with one storage.
  const std::vector<std::pair<std::string, std::string>> first = {
      {"bert.embeddings.word_embeddings.weight", turned},
      {"cls.predictions.decoder.weight", turned}};
  TemporaryDirectory whole, shards;
  auto all = first;
  all.emplace_back("bert.pooler.dense.bias", halves);
  write_bytes(whole / "pytorch_model.bin",
              zip_of({{"m/data.pkl", state_dict(all)}, {"m/data/0", kFour}, {"m/data/1", eight}}));
  write_bytes(shards / "pytorch_model-00001-of-00002.bin",
              zip_of({{"m/data.pkl", state_dict(first)}, {"m/data/0", kFour}}));
  const std::string second = "pytorch_model-00002-of-00002.bin";
  const std::string own = tensor(storage("HalfStorage", "0", 8), 1, integer(3), integer(1));
  for (bool legacy : {false, true}) {
    CAPTURE(legacy);
    const std::string pickle = state_dict("bert.pooler.dense.bias", own);
    write_bytes(shards / second, legacy ? legacy_of(pickle, {eight}, {2})
                                        : zip_of({{"m/data.pkl", pickle}, {"m/data/0", eight}}));
    CHECK(map_refusal(shards, R"({
        "bert.embeddings.word_embeddings.weight":"pytorch_model-00001-of-00002.bin",
        "cls.predictions.decoder.weight":"pytorch_model-00001-of-00002.bin",
        "bert.pooler.dense.bias":"pytorch_model-00002-of-00002.bin"})") == "");
    const TensorNames names{.base_prefix = "bert."};
    const auto expected = open_weights(whole.path(), names),
               found = open_weights(shards.path(), names);
    CHECK(found->format() == "pytorch (sharded)");
    CHECK(found->path() == shards / kIndex);
    CHECK(found->files() == std::vector{shards / kIndex,
                                        shards / "pytorch_model-00001-of-00002.bin",
                                        shards / second});
    CHECK(found->remark() == "");
    REQUIRE(expected->tensors().size() == 2);
    REQUIRE(found->tensors().size() == 2);
    CHECK(found->ignored().size() == expected->ignored().size());
    std::vector<const WeightInfo*> wanted;
    for (const WeightInfo& info : found->tensors()) {
      CAPTURE(info.name);
      const WeightInfo* same = expected->find(info.name);
      REQUIRE(same != nullptr);
      CHECK(info.dtype == same->dtype);
      CHECK(info.shape == same->shape);
      CHECK(same_bits(values_of(*found, info), values_of(*expected, *same)));
      wanted.push_back(&info);
    }
    CHECK(error_line(ExitCode::model, [&] { found->require_own_bytes(wanted); }) == "");
  }
}

TEST_CASE("each shard is read by its own content") {
  TemporaryDirectory directory;
  std::vector<float> values = {5, 6};
  write_bytes(directory / "one.bin", shard_of({"a"}));
  write_safetensors(directory / "two.bin", {{"b", {2}, values.data()}}, DType::f32);
  write_safetensors(directory / "three.safetensors", {{"c", {2}, values.data()}}, DType::f32);
  CHECK(map_refusal(directory, R"({"a":"one.bin","b":"two.bin","c":"three.safetensors"})") == "");
  const auto source = open_weights(directory.path());
  CHECK(values_of(*source, *source->find("a")) == std::vector<float>{1, 2, 3, 4});
  CHECK(values_of(*source, *source->find("b")) == values);
  CHECK(values_of(*source, *source->find("c")) == values);
}

TEST_CASE("tensors in an entry of a shard are logged") {
  TemporaryDirectory directory;
  const std::string inner = state_dict("a.b", float_tensor("0"));
  const std::string nested = state_dict("model", inner.substr(2, inner.size() - 3));
  write_bytes(directory / "one.bin", zip_of({{"m/data.pkl", nested}, {"m/data/0", kFour}}));
  CHECK(map_refusal(directory, R"({"a.b":"one.bin"})") == "");
  CHECK(contains(open_weights(directory.path())->remark(), "its entry ['model']"));
}

TEST_CASE("PyTorch's shards that do not fit their index are refused") {
  TemporaryDirectory directory;
  const std::string index = (directory / kIndex).string(), one = (directory / "one.bin").string();
  write_bytes(directory / "one.bin", shard_of({"a", "b"}));
  write_bytes(directory / "two.bin", shard_of({"c"}));
  const auto refused = [&](std::string_view map) { return map_refusal(directory, map); };
  CHECK(refused(R"({"a":"one.bin","c":"two.bin"})") == "");
  CHECK(refused(R"({"a":"one.bin","c":"three.bin"})") ==
        index + ": shard 'three.bin' is missing: fetch it, all shards are needed");
  CHECK(refused(R"({"a":"one.bin","c":"one.bin"})") ==
        index + ": tensor 'c' is not in shard 'one.bin' (or named twice)");
  CHECK(contains(refused(R"({"a":"one.bin","a":"one.bin"})"), "'one.bin' (or named twice)"));
  CHECK(contains(refused(R"({"a":"one.bin","a":"two.bin"})"),
                 "tensor 'a' is not in shard 'two.bin'"));
  for (std::string outside : {"../one.bin", "/etc/passwd", "x/../../a", ""}) {
    CHECK(contains(refused(concat(R"({"a":")", outside, "\"}")), "is not a file of the index's"));
  }
  CHECK(
      contains(refused(R"({"a":"one\u001b[31m.bin"})"), R"('one\x1b[31m.bin' has control bytes)"));
  CHECK(contains(refused(R"({"a":"one.bin","c":"./one.bin"})"), "under another name too"));
  fs::create_symlink("one.bin", directory / "link.bin");
  CHECK(contains(refused(R"({"a":"one.bin","b":"link.bin"})"), "under another name too"));

  const auto with_shard = [&](const std::string& bytes) {
    write_bytes(directory / "one.bin", bytes);
    return refused(R"({"a":"one.bin"})");
  };
  CHECK(with_shard(shard_of({"a", "a"})) == one + ": holds two tensors 'a'");
  CHECK(with_shard("hello").starts_with(one + ": is not a weight file"));
  CHECK(with_shard("").starts_with(one + ": is not a weight file"));
  CHECK(with_shard("\x89HDF\r\n\x1a\n") ==
        one + ": is an HDF5 file; shards are safetensors or PyTorch files");
  const std::string whole = shard_of({"a"});
  CHECK(contains(with_shard(whole.substr(0, whole.size() / 2)), "the file is truncated"));
  const std::string call = "\x80\x02" + global("os", "system") + text("true") + "\x85R.";
  CHECK(contains(with_shard(zip_of({{"m/data.pkl", call}})), "nothing was executed"));
  CHECK(contains(with_shard(legacy_of(call, {}, {})), "nothing was executed"));
}
