// TensorFlow's two formats: names, Keras files written here with HDF5, checkpoint indexes.
#include <doctest/doctest.h>
#include <hdf5.h>

#include "../contains.h"
#include "unit/shared.h"
#include "unit/weights/weights_test.h"
#include "weights/names.h"
#include "weights/tensorflow/crc32c.h"
#include "weights/tensorflow/leveldb_table.h"

using namespace finetune;
using namespace finetune::test;

namespace {

// Variable-length (nul-terminated) or fixed-length (blank-padded) strings.
void write_strings(hid_t object, const char* name, const std::vector<std::string>& strings,
                   bool variable) {
  hsize_t count = strings.size();
  hid_t space = H5Screate_simple(1, &count, nullptr), type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, variable ? H5T_VARIABLE : 200);
  if (!variable) H5Tset_strpad(type, H5T_STR_SPACEPAD);
  hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  std::vector<const char*> pointers;
  std::string padded;
  for (const std::string& s : strings) {
    pointers.push_back(s.c_str());
    padded += s + std::string(200 - s.size(), ' ');
  }
  H5Awrite(attribute, type, variable ? static_cast<const void*>(pointers.data()) : padded.data());
  H5Aclose(attribute);
  H5Tclose(type);
  H5Sclose(space);
}

void write_dataset(hid_t file, const std::string& path, std::vector<hsize_t> shape,
                   const std::vector<float>& values) {
  hid_t links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  hid_t space = H5Screate_simple(int(shape.size()), shape.data(), nullptr);
  hid_t dataset =
      H5Dcreate2(file, path.c_str(), H5T_IEEE_F32LE, space, links, H5P_DEFAULT, H5P_DEFAULT);
  if (!values.empty()) {
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  }
  H5Dclose(dataset);
  H5Sclose(space);
  H5Pclose(links);
}

std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = float(i);
  return values;
}

// A model of transformers 4.0 to 4.5: hidden 6, 3 heads of 2, kernels of three dimensions.
void write_keras_file(const fs::path& path, const std::string& root, bool variable) {
  hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const std::string self = "m/bert/encoder/layer_._0/attention/self/query/";
  const std::string output = "m/bert/encoder/layer_._0/attention/output/dense/";
  const std::string words = "m/bert/embeddings/word_embeddings/weight:0";
  const std::string bert = root + "/bert/";
  write_dataset(file, bert + self + "kernel:0", {6, 3, 2}, counting(36));
  write_dataset(file, bert + self + "bias:0", {3, 2}, counting(6));
  write_dataset(file, bert + output + "kernel:0", {3, 2, 6}, counting(36));
  write_dataset(file, bert + words, {4, 6}, counting(24));
  write_dataset(file, root + "/mlm___cls/m/mlm___cls/predictions/bias:0", {4}, counting(4));
  hid_t group = H5Gopen2(file, root.empty() ? "/" : root.c_str(), H5P_DEFAULT);
  write_strings(group, "layer_names", {"bert", "mlm___cls"}, variable);
  hid_t layer = H5Gopen2(group, "bert", H5P_DEFAULT);
  write_strings(layer, "weight_names0", {self + "kernel:0", self + "bias:0"}, variable);
  write_strings(layer, "weight_names1", {output + "kernel:0", words}, variable);
  H5Gclose(layer);
  layer = H5Gopen2(group, "mlm___cls", H5P_DEFAULT);
  write_strings(layer, "weight_names", {"m/mlm___cls/predictions/bias:0"}, variable);
  H5Gclose(layer);
  H5Gclose(group);
  H5Fclose(file);
}

}  // namespace

TEST_CASE("Keras names") {
  auto check = [](const char* stored, const char* name, bool transpose) {
    TensorflowName result = from_keras_name(stored);
    CHECK(result.name == name);
    CHECK(result.transpose == transpose);
  };
  check("tf_bert_for_pre_training/bert/embeddings/word_embeddings/weight:0",
        "bert.embeddings.word_embeddings.weight", false);
  check("tf_bert_model/bert/embeddings/position_embeddings/embeddings:0",
        "bert.embeddings.position_embeddings.weight", false);
  check("tf_bert_model/bert/encoder/layer_._11/output/dense/kernel:0",
        "bert.encoder.layer.11.output.dense.weight", true);
  check("tf_bert_model/bert/embeddings/LayerNorm/gamma:0", "bert.embeddings.LayerNorm.weight",
        false);
  check("tf_bert_model/bert/embeddings/LayerNorm/beta:0", "bert.embeddings.LayerNorm.bias", false);
  check("tf_bert_for_pre_training/nsp___cls/seq_relationship/kernel:0",
        "cls.seq_relationship.weight", true);
  check("tf_bert_for_sequence_classification/classifier/bias:0", "classifier.bias", false);
}

TEST_CASE("checkpoint names") {
  auto check = [](const char* stored, const char* name, bool transpose) {
    auto result = from_checkpoint_name(stored);
    REQUIRE(result.has_value());
    CHECK(result->name == name);
    CHECK(result->transpose == transpose);
  };
  check("bert/embeddings/word_embeddings", "bert.embeddings.word_embeddings.weight", false);
  check("bert/encoder/layer_11/attention/self/key/kernel",
        "bert.encoder.layer.11.attention.self.key.weight", true);
  check("bert/encoder/layer_0/output/LayerNorm/gamma",
        "bert.encoder.layer.0.output.LayerNorm.weight", false);
  check("bert/pooler/dense/bias", "bert.pooler.dense.bias", false);
  check("output_weights", "classifier.weight", false);
  check("output_bias", "classifier.bias", false);
  check("cls/squad/output_weights", "qa_outputs.weight", false);
  check("cls/predictions/output_bias", "cls.predictions.bias", false);
  check("cls/predictions/transform/dense/kernel", "cls.predictions.transform.dense.weight", true);
  check("cls/predictions/transform/LayerNorm/gamma", "cls.predictions.transform.LayerNorm.weight",
        false);
  for (const char* name : {"global_step", "bert/pooler/dense/bias/adam_v",
                           "bert/pooler/dense/kernel/AdamWeightDecayOptimizer_1"}) {
    CHECK(!from_checkpoint_name(name));
  }
}

TEST_CASE("Keras files: strings of both kinds, lists in parts, kernels by heads") {
  TemporaryDirectory directory;
  for (bool variable : {false, true}) {
    for (const char* root : {"", "/model_weights"}) {
      fs::path path = directory / "tf_model.h5";
      write_keras_file(path, root, variable);
      auto source = open_weights(path);
      CHECK(source->tensors().size() == 5);
      CHECK(source->ignored().empty());
      CHECK(values_of(*source, *source->find("cls.predictions.bias")) == counting(4));
      const std::string layer = "bert.encoder.layer.0.attention.";
      for (std::string name : {"self.query.weight", "output.dense.weight"}) {
        const WeightInfo* info = source->find(layer + name);
        REQUIRE(info != nullptr);
        CHECK(info->shape == std::vector<int64_t>{6, 6});
        std::vector<float> values = values_of(*source, *info);
        for (size_t out = 0; out < 6; ++out) {
          for (size_t in = 0; in < 6; ++in) CHECK(values[out * 6 + in] == float(in * 6 + out));
        }
      }
      CHECK(values_of(*source, *source->find(layer + "self.query.bias")) == counting(6));
      CHECK(values_of(*source, *source->find("bert.embeddings.word_embeddings.weight")) ==
            counting(24));
    }
  }
}

TEST_CASE("other HDF5 files are told apart") {
  TemporaryDirectory directory;
  fs::path path = directory / "step-00000100.h5";
  hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  write_dataset(file, "/weights", {3}, counting(3));
  H5Fclose(file);
  CHECK(contains(refusal(path), "not weights of a Keras model"));
  write_bytes(path, "plain text");
  CHECK(contains(refusal(path), "is not an HDF5 file"));
  CHECK(contains(refusal(directory / "absent.h5"), "absent.h5"));
}

TEST_CASE("a huge dataset without data is refused") {
  TemporaryDirectory directory;
  fs::path path = directory / "tf_model.h5";
  hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  write_dataset(file, "/bert/m/bert/w:0", {1 << 20, 1 << 20}, {});
  write_strings(file, "layer_names", {"bert"}, true);
  hid_t layer = H5Gopen2(file, "bert", H5P_DEFAULT);
  write_strings(layer, "weight_names", {"m/bert/w:0"}, true);
  H5Gclose(layer);
  H5Fclose(file);
  CHECK(contains(refusal(path), "has only 0 bytes of data"));
}

namespace {

std::string block_bytes(const std::string& entries) {
  std::string block = entries + std::string(4, '\0') + std::string("\1\0\0\0", 4);  // one restart
  block += '\0';  // no compression
  uint32_t sum = masked_crc32c(reinterpret_cast<const uint8_t*>(block.data()), block.size());
  return block.append(reinterpret_cast<const char*>(&sum), 4);
}

std::string table_entry(const std::string& key, const std::string& value) {
  return std::string{'\0', char(key.size()), char(value.size())} + key + value;
}

}  // namespace

TEST_CASE("a table's blocks are read once each") {
  const std::string data = block_bytes(table_entry("a", "1"));
  const std::string handle{'\0', char(data.size() - 5)};
  auto table = [&](int times) {
    std::string index;
    for (int i = 0; i < times; ++i) index += table_entry(std::string(1, char('a' + i)), handle);
    index = block_bytes(index);
    std::string footer{'\0', '\0', char(data.size()), char(index.size() - 5)};
    footer.resize(40);
    return data + index + footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
  };
  REQUIRE(read_table("x.index", table(1)).size() == 1);
  // Some megabytes could name one block a million times, and it would be summed as often.
  CHECK_THROWS_WITH_AS(read_table("x.index", table(10)), "x.index: its table names blocks twice",
                       Error);
}

TEST_CASE("CRC-32C") {
  auto of = [](std::string_view s) {
    return crc32c(reinterpret_cast<const uint8_t*>(s.data()), s.size());
  };
  CHECK(of("123456789") == 0xE3069283u);            // the check value of the CRC catalogue
  CHECK(of(std::string(32, '\0')) == 0x8A9136AAu);  // RFC 3720, B.4
  CHECK(of(std::string(32, '\xff')) == 0x62A8AB43u);
}

TEST_CASE("indexes of Google's checkpoints") {
  if (!have_shared("weights/tf_ckpt_index_only")) return;
  struct Case {
    const char* file;
    size_t layers;
  };
  for (const Case& c : {Case{"hwf87_wwm_bert_model.ckpt.index", 12},
                        Case{"llSiddharthll_bert_model.ckpt.index", 8}}) {
    std::string bytes =
        read_bytes(shared_path(std::string("weights/tf_ckpt_index_only/") + c.file));
    auto table = read_table(c.file, bytes);
    size_t encoder = 0;
    for (const TableEntry& entry : table) encoder += entry.key.starts_with("bert/encoder/layer_");
    CHECK(encoder == 16 * c.layers);
    CHECK(contains(refusal(shared_path(std::string("weights/tf_ckpt_index_only/") + c.file)),
                   "No such file"));
  }
}

TEST_CASE("damaged data of a checkpoint are found by their checksum") {
  if (!have_shared("golden/formats/tensorflow-1-checkpoint")) return;
  TemporaryDirectory directory;
  const std::string data = "bert_model.ckpt.data-00000-of-00001";
  auto folder = shared_path("golden/formats/tensorflow-1-checkpoint");
  write_bytes(directory / "bert_model.ckpt.index", read_bytes(folder / "bert_model.ckpt.index"));
  std::string bytes = read_bytes(folder / data);
  write_bytes(directory / data, bytes.substr(0, bytes.size() - 1));
  CHECK(contains(refusal(directory.path()), "truncated?"));
  bytes[bytes.size() / 2] ^= 1;
  write_bytes(directory / data, bytes);
  auto source = open_weights(directory.path());
  size_t refused = 0;
  for (const WeightInfo& info : source->tensors()) {
    const std::string fault = error_line(ExitCode::model, [&] { values_of(*source, info); });
    CHECK((fault.empty() || contains(fault, "checksum")));
    refused += !fault.empty();
  }
  CHECK(refused == 1);
}
