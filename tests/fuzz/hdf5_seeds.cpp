// Writes HDF5 files of every kind that is read, as inputs to begin with.
//   hdf5_seeds KERAS_FOLDER CHECKPOINT_FOLDER
#include <hdf5.h>

#include <cstdio>
#include <functional>

#include "fuzz/tiny_checkpoint.h"
#include "train/checkpoint/checkpoint.h"
#include "weights/hdf5/hdf5_file.h"

namespace {

using namespace finetune;
namespace fs = std::filesystem;

hid_t checked(hid_t id) {
  if (id < 0) throw std::runtime_error(hdf5_reason());
  return id;
}

class KerasFile {
 public:
  KerasFile(const fs::path& path, H5F_libver_t version, hsize_t user_block) {
    const Hdf5Handle creation(checked(H5Pcreate(H5P_FILE_CREATE)), H5Pclose);
    H5Pset_userblock(creation, user_block);
    const Hdf5Handle access(checked(H5Pcreate(H5P_FILE_ACCESS)), H5Pclose);
    H5Pset_libver_bounds(access, version, std::max(version, H5F_LIBVER_V18));
    file_ = {checked(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access)), H5Fclose};
    links_ = {checked(H5Pcreate(H5P_LINK_CREATE)), H5Pclose};
    H5Pset_create_intermediate_group(links_, 1);
  }

  // A layer with its weights' names; more than eight attributes use dense storage.
  void group(const std::string& path) {
    Hdf5Handle(checked(H5Gcreate2(file_, path.c_str(), links_, H5P_DEFAULT, H5P_DEFAULT)),
               H5Gclose);
  }
  void mark(const std::string& object, const std::string& name) {
    const Hdf5Handle owner(checked(H5Oopen(file_, object.c_str(), H5P_DEFAULT)), H5Oclose);
    const Hdf5Handle space(checked(H5Screate(H5S_SCALAR)), H5Sclose);
    const Hdf5Handle made(
        checked(H5Acreate2(owner, name.c_str(), H5T_STD_I8LE, space, H5P_DEFAULT, H5P_DEFAULT)),
        H5Aclose);
    const int8_t one = 1;
    H5Awrite(made, H5T_NATIVE_INT8, &one);
  }
  void dataset(const std::string& path, std::vector<hsize_t> shape, hid_t type,
               const std::function<void(hid_t)>& change = {}) {
    const Hdf5Handle properties(checked(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
    if (change) change(properties);
    const Hdf5Handle space(checked(H5Screate_simple(int(shape.size()), shape.data(), nullptr)),
                           H5Sclose);
    const Hdf5Handle made(
        checked(H5Dcreate2(file_, path.c_str(), type, space, links_, properties, H5P_DEFAULT)),
        H5Dclose);
    hsize_t count = 1;
    for (hsize_t extent : shape) count *= extent;
    std::vector<double> values(count);
    for (size_t i = 0; i < values.size(); ++i) values[i] = double(i);
    H5Dwrite(made, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  }
  hid_t id() const { return file_; }

 private:
  Hdf5Handle links_;
  Hdf5Handle file_;
};

constexpr const char* kLayer = "/bert/tf_bert/bert/encoder/layer_._0/";

void mark_layers(KerasFile& file) {
  file.mark("/", "layer_names");
  file.group("/bert");
  file.mark("/bert", "weight_names");
}

void write_plain(KerasFile& file) {
  mark_layers(file);
  file.dataset(concat(kLayer, "output/dense/kernel:0"), {2, 3}, H5T_IEEE_F32LE);
  file.dataset(concat(kLayer, "output/dense/bias:0"), {3}, H5T_IEEE_F64BE);
  file.dataset(concat(kLayer, "attention/self/query/kernel:0"), {2, 1, 2}, H5T_STD_I32LE);
}

void write_compact(KerasFile& file) {
  file.group("/model_weights");
  file.mark("/model_weights", "layer_names0");
  file.group("/model_weights/bert");
  file.mark("/model_weights/bert", "weight_names");
  file.dataset("/model_weights/bert/pooler/dense/bias:0", {2, 2}, H5T_STD_U8LE,
               [](hid_t properties) { H5Pset_layout(properties, H5D_COMPACT); });
}

// More than eight of them are stored in another way.
void write_many(KerasFile& file) {
  mark_layers(file);
  file.dataset("/bert/w0:0", {2}, H5T_IEEE_F32LE);
  for (int i = 1; i < 12; ++i) {
    H5Lcreate_hard(file.id(), "/bert/w0:0", file.id(), concat("/bert/w", i, ":0").c_str(),
                   H5P_DEFAULT, H5P_DEFAULT);
    file.mark("/bert", concat("mark ", i));
  }
}

void write_chunks(KerasFile& file) {
  mark_layers(file);
  file.dataset(concat(kLayer, "output/dense/kernel:0"), {5, 5}, H5T_IEEE_F32LE,
               [](hid_t properties) {
                 const hsize_t chunk[] = {2, 2};
                 H5Pset_chunk(properties, 2, chunk);
               });
}

void write_keras(const fs::path& folder) {
  const std::pair<const char*, H5F_libver_t> versions[] = {
      {"oldest", H5F_LIBVER_EARLIEST}, {"v18", H5F_LIBVER_V18}, {"latest", H5F_LIBVER_LATEST}};
  const std::pair<const char*, std::function<void(KerasFile&)>> kinds[] = {
      {"plain", write_plain},
      {"compact", write_compact},
      {"many", write_many},
      {"chunks", write_chunks}};
  for (const auto& [version_name, version] : versions) {
    for (const auto& [kind, write] : kinds) {
      KerasFile file(folder / concat(kind, "-", version_name, ".h5"), version,
                     version == H5F_LIBVER_V18 ? 512 : 0);
      write(file);
    }
  }
}

void write_checkpoints(const fs::path& folder) {
  fuzz::TinyModel model;
  CheckpointState state;
  state.step = 100;
  state.options = "lr = 5e-05\n";
  state.version = "0.1.0";
  write_checkpoint(folder / "bare.h5", state, model.table, model.arenas());
  state.totals = {{"evaluated", 50}, {"loss", 0.5}};
  state.best_step = 50;
  state.best_value = 0.75;
  state.labels = {"a", "Café"};
  state.code_path = "CPU, AVX2, fp32";
  write_checkpoint(folder / "whole.h5", state, model.table, model.arenas());
  for (int i = 0; i < 12; ++i) state.totals[concat("total ", i)] = i;
  write_checkpoint(folder / "totals.h5", state, model.table, model.arenas());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: hdf5_seeds KERAS_FOLDER CHECKPOINT_FOLDER\n");
    return 2;
  }
  try {
    prepare_hdf5();
    write_keras(argv[1]);
    write_checkpoints(argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hdf5_seeds: error: %s\n", error.what());
    return 1;
  }
}
