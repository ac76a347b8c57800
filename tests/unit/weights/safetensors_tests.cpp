// safetensors: the format's rules, one small file each; the writer against the reader.
#include <doctest/doctest.h>

#include <cmath>

#include "../contains.h"
#include "core/sha256.h"
#include "unit/weights/weights_test.h"
#include "weights/stored_tensor.h"

using namespace finetune;
using namespace finetune::test;

namespace {

const std::string kEight("\0\0\x80?\0\0\0@", 8);  // 1.0f, 2.0f

std::string refusal_of(std::string_view header, std::string_view data) {
  TemporaryDirectory directory;
  write_bytes(directory / "a.safetensors", safetensors_bytes(header, data));
  return refusal(directory / "a.safetensors");
}

bool refused_for(std::string_view header, std::string_view data, std::string_view fault) {
  std::string message = refusal_of(header, data);
  INFO(message);
  return contains(message, fault) && message.find('\n') == std::string::npos;
}

}  // namespace

TEST_CASE("the smallest valid file") {
  TemporaryDirectory directory;
  // A header of 88 bytes with trailing blanks; tensor w = [1, 2].
  std::string header = R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2],)"
                       R"("data_offsets":[0,8]}}   )";
  CHECK(header.size() == 88);
  write_bytes(directory / "a.safetensors", safetensors_bytes(header, kEight));
  auto source = open_weights(directory / "a.safetensors");
  REQUIRE(source->tensors().size() == 1);
  CHECK(values_of(*source, *source->find("w")) == std::vector<float>{1, 2});
  std::vector<float> values = {1, 2};
  write_safetensors(directory / "b.safetensors", {{"w", {2}, values.data()}}, DType::f32);
  CHECK(read_bytes(directory / "b.safetensors") == read_bytes(directory / "a.safetensors"));
}

TEST_CASE("a file without a suffix is safetensors, whatever the length of its header") {
  TemporaryDirectory directory;
  std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  header.resize(128, ' ');  // a length of one byte, with which pickles begin too
  write_bytes(directory / "weights", safetensors_bytes(header, kEight));
  auto source = open_weights(directory / "weights");
  CHECK(values_of(*source, *source->find("w")) == std::vector<float>{1, 2});
}

TEST_CASE("no dimensions and empty dimensions are allowed") {
  TemporaryDirectory directory;
  std::string header = R"({"e":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},)"
                       R"("s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                       R"("t":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
  write_bytes(directory / "a.safetensors", safetensors_bytes(header, kEight));
  auto source = open_weights(directory / "a.safetensors");
  CHECK(values_of(*source, *source->find("s")) == std::vector<float>{1});
  CHECK(values_of(*source, *source->find("e")).empty());
}

TEST_CASE("an empty dimension hides none that are too large") {
  CHECK(element_count({0, 7, 3}) == 0);
  CHECK(element_count({4, 0}) == 0);
  CHECK(!element_count({0, int64_t{1} << 62, int64_t{1} << 62}));
  CHECK(!element_count({0, -1}));
}

TEST_CASE("every type is converted, whatever its alignment") {
  TemporaryDirectory directory;
  std::string header = R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                       R"("b":{"dtype":"F64","shape":[1],"data_offsets":[3,11]},)"
                       R"("c":{"dtype":"F16","shape":[2],"data_offsets":[11,15]},)"
                       R"("d":{"dtype":"BF16","shape":[1],"data_offsets":[15,17]},)"
                       R"("e":{"dtype":"I64","shape":[1],"data_offsets":[17,25]},)"
                       R"("f":{"dtype":"I32","shape":[1],"data_offsets":[25,29]}})";
  std::string data("\x01\x02\xff", 3);
  double d = 0.1;
  uint16_t halves[] = {0x3C00, 0x0001}, brain = 0xC040;
  int64_t i = -5;
  int32_t j = 1 << 20;
  auto add = [&](const void* from, size_t n) { data.append(static_cast<const char*>(from), n); };
  add(&d, 8);
  add(halves, 4);
  add(&brain, 2);
  add(&i, 8);
  add(&j, 4);
  write_bytes(directory / "x.safetensors", safetensors_bytes(header, data));
  auto source = open_weights(directory / "x.safetensors");
  auto get = [&](const char* name) { return values_of(*source, *source->find(name)); };
  CHECK(get("a") == std::vector<float>{1, 2, 255});
  CHECK(get("b") == std::vector<float>{0.1f});
  CHECK(get("c") == std::vector<float>{1, 0x1p-24f});
  CHECK(get("d") == std::vector<float>{-3});
  CHECK(get("e") == std::vector<float>{-5});
  CHECK(get("f") == std::vector<float>{1 << 20});
}

TEST_CASE("each rule refuses its fault") {
  const std::string w = R"("w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  CHECK(refused_for("{" + w + "}", kEight.substr(1), "truncated?"));
  CHECK(refused_for("{" + w + "}", kEight + "x", "1 bytes follow"));
  CHECK(refused_for("{" + w + "," + w + "}", kEight, "duplicate key 'w'"));
  CHECK(refused_for("{" + w + R"(,"__metadata__":{"a":1}})", kEight, "is not a string"));
  CHECK(refused_for("{" + w + R"(,"__metadata__":[]})", kEight, "__metadata__ is not"));
  CHECK(refused_for(R"({"__metadata__":{},"__metadata__":{},)" + w + "}", kEight, "duplicate key"));
  CHECK(refused_for(" {" + w + "}", kEight, "does not begin with '{'"));
  CHECK(refused_for("{" + w + "}}", kEight, "not a JSON object"));
  CHECK(refused_for("{\"w\":[]}", "", "is not a JSON object"));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[2]}})", kEight, "needs dtype"));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", kEight,
                    "needs dtype"));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})", kEight,
                    "duplicate key \"shape\""));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", kEight,
                    "not a whole number"));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", kEight,
                    "not a whole number"));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
                    "", "overflows"));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})",
                    "", "overflows"));
  CHECK(refused_for(R"({"w":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", "x", "takes"));
  CHECK(refused_for(R"({"w":{"dtype":"I8","shape":[8],"data_offsets":[0,8]}})", kEight,
                    "not supported"));
  CHECK(refused_for("{\"w\xff\":{}}", "", "not a JSON object"));
  CHECK(refused_for(std::string(5000, '{'), "", "not a JSON object"));
}

TEST_CASE("files too short for a header") {
  TemporaryDirectory directory;
  for (size_t size : {0, 1, 7, 8}) {
    write_bytes(directory / "a.safetensors", std::string(size, '\0'));
    CHECK(!refusal(directory / "a.safetensors").empty());
  }
  write_bytes(directory / "a.safetensors", std::string(16, '\xff'));
  CHECK(contains(refusal(directory / "a.safetensors"), "longer than the file"));
}

TEST_CASE("names become canonical, and two of the same are refused") {
  TemporaryDirectory directory;
  auto entry = [](const std::string& name, int at) {
    return concat('"', name, R"(":{"dtype":"U8","shape":[1],"data_offsets":[)", at, ",", at + 1,
                  "]}");
  };
  std::string header = "{" + entry("module.embeddings.LayerNorm.gamma", 0) + "," +
                       entry("module.encoder.layer.0.output.LayerNorm.beta", 1) + "," +
                       entry("cls.seq_relationship.bias", 2) + "," + entry("head.gamma", 3) + "," +
                       entry("embeddings.token_type_ids", 4) + "}";
  write_bytes(directory / "a.safetensors", safetensors_bytes(header, "12345"));
  auto source = open_weights(directory / "a.safetensors", {.base_prefix = "bert."});
  CHECK(source->tensors().size() == 3);
  CHECK(source->ignored().size() == 2);
  CHECK(source->find("bert.embeddings.LayerNorm.weight") != nullptr);
  CHECK(source->find("bert.encoder.layer.0.output.LayerNorm.bias") != nullptr);
  CHECK(source->find("head.gamma") != nullptr);
  CHECK(open_weights(directory / "a.safetensors")->find("embeddings.LayerNorm.weight") != nullptr);
  CHECK(open_weights(directory / "a.safetensors", {.base_prefix = "other."})
            ->find("other.encoder.layer.0.output.LayerNorm.bias") != nullptr);
  CHECK(refused_for(
      "{" + entry("bert.LayerNorm.gamma", 0) + "," + entry("bert.LayerNorm.weight", 1) + "}", "12",
      "tensors 'bert.LayerNorm.gamma' and 'bert.LayerNorm.weight' are both "
      "'bert.LayerNorm.weight'"));
}

TEST_CASE("of a head for masked words the decoder is tied, and has a bias under one of two names") {
  TemporaryDirectory directory;
  const std::vector<float> values = {1, 2, 3, 4};
  auto opened = [&](const std::vector<std::string>& names) {
    std::vector<WeightView> views;
    for (size_t i = 0; i < names.size(); ++i) views.push_back({names[i], {1}, &values[i]});
    write_safetensors(directory / "a.safetensors", views, DType::f32);
    return open_weights(directory / "a.safetensors", {.base_prefix = "bert."});
  };
  const std::string head = "cls.predictions.", dense = head + "transform.dense.weight";
  auto source = opened({head + "bias", head + "decoder.bias", head + "decoder.weight", dense});
  CHECK(source->tensors().size() == 2);
  CHECK(source->ignored().size() == 2);
  CHECK(source->find(dense) != nullptr);
  REQUIRE(source->find(head + "bias") != nullptr);
  CHECK(source->find(head + "bias")->stored_name == head + "bias");
  source = opened({head + "decoder.bias", head + "decoder.weight", dense});
  CHECK(source->ignored().size() == 1);
  REQUIRE(source->find(head + "bias") != nullptr);
  CHECK(source->find(head + "bias")->stored_name == head + "decoder.bias");
}

TEST_CASE("more tensors than a model has are refused") {
  std::string header = "{";
  for (int i = 0; i <= 100'000; ++i) {
    header +=
        concat(i ? "," : "", "\"t", i, R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
  }
  CHECK(refused_for(header + "}", "", "holds 100001 tensors"));
}

TEST_CASE("what is written is read back, and the hash is that of the file") {
  TemporaryDirectory directory;
  std::vector<float> a(300 * 257), b(5);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = std::sin(float(i)) * std::pow(10.0f, float(i % 9) - 4);
  for (size_t i = 0; i < b.size(); ++i) b[i] = 1.0f / float(i + 1);
  std::vector<WeightView> views = {{"z.weight", {300, 257}, a.data()}, {"a \"b\"", {5}, b.data()}};
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    fs::path path = directory / "model.safetensors";
    write_safetensors(path, views, dtype);
    CHECK(safetensors_sha256(views, dtype) == sha256_of_file(path));
    auto source = open_weights(path);
    for (const WeightView& view : views) {
      const WeightInfo* info = source->find(view.name);
      REQUIRE(info != nullptr);
      CHECK(info->dtype == dtype);
      CHECK(info->shape == view.shape);
      std::vector<float> values = values_of(*source, *info);
      for (size_t i = 0; i < values.size(); ++i) {
        float expected = view.data[i];
        if (dtype == DType::f16) expected = half_to_float(float_to_half(expected));
        if (dtype == DType::bf16) expected = float(bfloat16(expected));
        REQUIRE(values[i] == expected);
      }
    }
  }
}

TEST_CASE("a place that cannot be written is an error that names it") {
  TemporaryDirectory directory;
  std::vector<float> value = {1};
  CHECK_THROWS_AS(write_safetensors(directory / "absent/model.safetensors",
                                    {{"a", {1}, value.data()}}, DType::f32),
                  Error);
}
