// Forged checkpoints with a valid seal: the seal is a checksum, so the contents are not trusted.
// Each is refused with one line, in every way in which a checkpoint is read.
#include <hdf5.h>

#include <functional>
#include <limits>

#include "../contains.h"
#include "checkpoint_fixture.h"
#include "temporary_directory.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/checkpoint/sealed_file.h"
#include "weights/hdf5/bytes.h"

using namespace finetune;
using namespace finetune::test;

namespace {

// Recomputes the checksums of version 2 object headers.
void mend_headers(std::string& bytes) {
  for (size_t at = 0; (at = bytes.find("OHDR", at)) != std::string::npos; ++at) {
    const auto flags = uint8_t(bytes[at + 5]);
    const size_t before = flags & 0x20 ? 22 : 6, width = size_t{1} << (flags & 3);
    uint64_t content = 0;
    std::memcpy(&content, &bytes[at + before], width);
    const size_t size = before + width + size_t(content);
    const uint32_t sum = hdf5::lookup3(std::string_view(bytes).substr(at, size));
    std::memcpy(&bytes[at + size], &sum, sizeof sum);
  }
}

// Changes a good checkpoint with the HDF5 library, then its bytes, and seals it again.
class Forgery {
 public:
  Forgery() {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    write_checkpoint(older_, sample_state(90), sample_.table, sample_.arenas());
  }

  using Change = std::function<void(hid_t file)>;
  void make(const Change& change) {
    write_checkpoint(path_, sample_state(100), sample_.table, sample_.arenas());
    const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    REQUIRE(file >= 0);
    change(file);
    REQUIRE(H5Fclose(file) >= 0);
    put_seal(path_, seal_of(path_));
  }
  void replace(uint64_t from, uint64_t to) {
    std::string bytes = read_text_file(path_);
    const std::string before(reinterpret_cast<const char*>(&from), sizeof from);
    const std::string after(reinterpret_cast<const char*>(&to), sizeof to);
    size_t count = 0;
    for (size_t at = 0; (at = bytes.find(before, at)) != std::string::npos; ++count) {
      bytes.replace(at, after.size(), after);
    }
    REQUIRE(count > 0);
    mend_headers(bytes);
    write_bytes(path_, bytes);
    put_seal(path_, seal_of(path_));
  }

  void check_refused(const std::string& reason) {
    const std::string message = refusal(path_);
    CAPTURE(message);
    CHECK(contains(message, reason));
    CHECK(message.size() < path_.string().size() + 200);
    CHECK_THROWS_AS(read_checkpoint(path_, sample_.table, sample_.arenas()), Error);
    const auto newest = newest_valid_checkpoint(directory_.path());
    REQUIRE(newest.has_value());
    CHECK(newest->file.step == 90);
  }
  // A valid state with invalid tensors.
  void check_tensors_refused(const std::string& reason, bool in_lists = true) {
    CHECK(refusal(path_) == "");
    const std::string message = error_line(
        ExitCode::model, [&] { read_checkpoint(path_, sample_.table, sample_.arenas()); });
    CAPTURE(message);
    CHECK(contains(message, reason));
    CHECK(error_line(ExitCode::model, [&] { checkpoint_tensors(path_); }).empty() != in_lists);
  }

  const fs::path& directory() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
  fs::path older_ = directory_ / "step-00000090.h5", path_ = directory_ / "step-00000100.h5";
  Sample sample_{1};
};

void replace_attribute(hid_t file, const char* group, const char* name, hid_t type,
                       const void* value) {
  const hid_t owner = H5Oopen(file, group, H5P_DEFAULT), space = H5Screate(H5S_SCALAR);
  H5Adelete(owner, name);
  const hid_t attribute = H5Acreate2(owner, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  REQUIRE(H5Awrite(attribute, type, value) >= 0);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Oclose(owner);
}

hid_t text_type(size_t size) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, size);
  return type;
}

// Replaces the object of that name; `values` may be null: nothing is written.
void replace_dataset(hid_t file, const char* name, hid_t type, const std::vector<hsize_t>& shape,
                     const void* values, hid_t properties = H5P_DEFAULT) {
  REQUIRE(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
  const hid_t space = H5Screate_simple(int(shape.size()), shape.data(), nullptr);
  const hid_t made = H5Dcreate2(file, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  REQUIRE(made >= 0);
  if (values) REQUIRE(H5Dwrite(made, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  H5Dclose(made);
  H5Sclose(space);
}

constexpr const char* kTensor = "/weights/bert.pooler.dense.bias";  // 16 floats

}  // namespace

TEST_CASE("counts that no run has") {
  Forgery forgery;
  const std::vector<std::pair<const char*, int64_t>> counts = {
      {"step", std::numeric_limits<int64_t>::min()},
      {"step", std::numeric_limits<int64_t>::max()},
      {"step", -1},
      {"epoch", -5},
      {"epoch", (int64_t{1} << 53) + 1},
      {"step_in_epoch", -1},
      {"best_step", -2},
      {"best_step", 101},
      {"evaluations_without_improvement", -1},
  };
  for (const auto& count : counts) {
    CAPTURE(count.first);
    forgery.make([n = count.first, v = count.second](hid_t file) {
      replace_attribute(file, "/", n, H5T_STD_I64LE, &v);
    });
    forgery.check_refused(
        concat("attribute '", count.first, "' is ", count.second, ", which no run has"));
  }
  for (double evaluated : {-1.0, 100.5, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    forgery.make([&](hid_t file) {
      replace_attribute(file, "/totals", "evaluated", H5T_IEEE_F64LE, &evaluated);
    });
    forgery.check_refused("attribute 'evaluated' is ");
  }
}

TEST_CASE("attributes of other types, or none") {
  Forgery forgery;
  const double number = 100;
  forgery.make([&](hid_t file) { replace_attribute(file, "/", "step", H5T_IEEE_F64LE, &number); });
  forgery.check_refused("attribute 'step' is not a whole number");
  const int32_t narrow = 100;
  forgery.make([&](hid_t file) { replace_attribute(file, "/", "step", H5T_STD_I32LE, &narrow); });
  forgery.check_refused("attribute 'step' is not a whole number");
  const hid_t variable = text_type(H5T_VARIABLE);
  const char* text = "0.1.0";
  forgery.make([&](hid_t file) { replace_attribute(file, "/", "version", variable, &text); });
  forgery.check_refused("attribute 'version' is not a text");
  const hid_t fixed = text_type(8);
  for (const char* bad : {"\x1b[31m\0\0", "a\nb\0\0\0\0", "\xff\xfe\0\0\0\0\0"}) {
    forgery.make([&](hid_t file) { replace_attribute(file, "/", "version", fixed, bad); });
    forgery.check_refused("attribute 'version' is not a text");
  }
  forgery.make([](hid_t file) { H5Adelete(file, "epoch"); });
  forgery.check_refused("has no attribute 'epoch'");
  H5Tclose(variable);
  H5Tclose(fixed);
}

TEST_CASE("labels that are larger than the file, external or not text") {
  Forgery forgery;
  const hid_t one = text_type(1), four = text_type(4), eight = text_type(8);
  forgery.make(
      [&](hid_t file) { replace_dataset(file, "/labels", one, {hsize_t{1} << 40}, nullptr); });
  forgery.check_refused("has only 0 bytes of data");
  constexpr uint64_t kMark = (uint64_t{1} << 59) + 0x1234567;
  struct Overflow {
    hid_t type;
    uint64_t size, count;
  };
  for (const Overflow& o :
       {Overflow{four, 4, (uint64_t{1} << 62) + 2}, Overflow{four, 4, uint64_t{1} << 62},
        Overflow{eight, 8, (uint64_t{1} << 61) + 1}}) {
    forgery.make([&](hid_t file) { replace_dataset(file, "/labels", o.type, {kMark}, nullptr); });
    forgery.replace(kMark, o.count);
    forgery.replace(kMark * o.size, o.count * o.size);
    forgery.check_refused("is larger than any file");
  }
  const fs::path secret = forgery.directory() / "secret";
  write_bytes(secret, std::string(64, 'x'));
  const hid_t external = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(external, secret.c_str(), 0, 64);
  forgery.make(
      [&](hid_t file) { replace_dataset(file, "/labels", eight, {8}, nullptr, external); });
  forgery.check_refused("external storage");
  H5Pclose(external);
  forgery.make([&](hid_t file) {
    replace_dataset(file, "/labels", eight, {2}, "fine\0\0\0\0\xff\xfe\0\0\0\0\0\0");
  });
  forgery.check_refused("text 1 is not valid UTF-8: '\\xff\\xfe'");
  forgery.make(
      [&](hid_t file) { replace_dataset(file, "/options", eight, {1}, "lr\xff\0\0\0\0\0"); });
  forgery.check_refused("is not valid UTF-8");
  forgery.make([&](hid_t file) {
    const int64_t numbers[] = {1, 2};
    replace_dataset(file, "/labels", H5T_STD_I64LE, {2}, numbers);
  });
  forgery.check_refused("is not a list of texts");
  forgery.make([&](hid_t file) {
    H5Ldelete(file, "/labels", H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/labels", file, "/labels", H5P_DEFAULT, H5P_DEFAULT);
  });
  forgery.check_refused("its link 'labels' is an external link");
  for (hid_t type : {one, four, eight}) H5Tclose(type);
}

TEST_CASE("labels as they come from data may have any character") {
  TemporaryDirectory directory;
  Sample sample(1);
  CheckpointState state = sample_state(100);
  state.labels = {"a\nb", "c\x1b[31md", "e\tf"};
  write_checkpoint(directory / "step-00000100.h5", state, sample.table, sample.arenas());
  CHECK(read_checkpoint_state(directory / "step-00000100.h5").labels == state.labels);
}

TEST_CASE("tensors that are external or not float32") {
  Forgery forgery;
  const std::vector<double> doubles(16, 1.0);
  forgery.make(
      [&](hid_t file) { replace_dataset(file, kTensor, H5T_IEEE_F64LE, {16}, doubles.data()); });
  forgery.check_tensors_refused("is not one unsplit block of float32");
  forgery.make([&](hid_t file) { replace_dataset(file, kTensor, H5T_IEEE_F32LE, {16}, nullptr); });
  forgery.check_tensors_refused("has only 0 bytes of data");
  const hid_t external = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(external, "/etc/passwd", 0, 64);
  forgery.make(
      [&](hid_t file) { replace_dataset(file, kTensor, H5T_IEEE_F32LE, {16}, nullptr, external); });
  forgery.check_tensors_refused("external storage");
  H5Pclose(external);
  forgery.make([&](hid_t file) {
    H5Ldelete(file, kTensor, H5P_DEFAULT);
    H5Lcreate_soft("/m/bert.pooler.dense.bias", file, kTensor, H5P_DEFAULT, H5P_DEFAULT);
  });
  forgery.check_tensors_refused("is a soft link");
  forgery.make([&](hid_t file) { H5Ldelete(file, kTensor, H5P_DEFAULT); });
  forgery.check_tensors_refused(concat("has no '", kTensor, "'"), false);
}

TEST_CASE("names of tensors that would spoil a terminal") {
  Forgery forgery;
  for (const char* name : {"/weights/\x1b[31m", "/weights/\xff"}) {
    forgery.make([&](hid_t file) { H5Lmove(file, kTensor, file, name, H5P_DEFAULT, H5P_DEFAULT); });
    forgery.check_tensors_refused("has a link with the name '\\x");
  }
}
