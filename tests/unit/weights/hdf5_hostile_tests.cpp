// HDF5 files that lead elsewhere, claim what they do not have, or have what is not read: each is
// refused with one line that names the file, the object and the reason, before a value is read.
#include <sys/stat.h>

#include "../contains.h"
#include "unit/shared.h"
#include "unit/weights/hdf5_maker.h"
#include "unit/weights/weights_test.h"
#include "weights/hdf5/reader.h"

using namespace finetune;
using namespace finetune::test;

namespace {

constexpr const char* kLayer = "/bert";
constexpr const char* kWeight = "/bert/m/bert/embeddings/word_embeddings/weight:0";

// A Keras file of one layer, to which `add` adds a weight or something else.
void write_keras(const fs::path& path, Hdf5Format format,
                 const std::function<void(MadeFile&)>& add) {
  MadeFile made(path, format);
  made.group(kLayer);
  made.mark("/", "layer_names");
  made.mark(kLayer, "weight_names");
  add(made);
}

void with_space(hid_t properties) {
  H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
}

void in_chunks(hid_t properties) {
  const hsize_t chunk[] = {2, 2};
  H5Pset_chunk(properties, 2, chunk);
}

// What opening it as weights and reading them gives, in every format of the library's.
void check_refused(const std::string& object, const std::string& reason,
                   const std::function<void(MadeFile&)>& add) {
  TemporaryDirectory directory;
  for (Hdf5Format format : kHdf5Formats) {
    const fs::path path = directory / "tf_model.h5";
    write_keras(path, format, add);
    const std::string message = refusal(path);
    CAPTURE(message);
    CHECK(message.starts_with(path.string()));
    CHECK(contains(message, "'" + object));
    CHECK(contains(message, reason));
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.size() < path.string().size() + 300);
  }
}

void replace_all(std::string& bytes, std::string_view from, std::string_view to) {
  REQUIRE(from.size() == to.size());
  size_t count = 0;
  for (size_t at = 0; (at = bytes.find(from, at)) != std::string::npos; at += to.size()) {
    bytes.replace(at, to.size(), to);
    ++count;
  }
  REQUIRE(count > 0);
}

std::string number(uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// The refusal of a file of the oldest format (which has no checksums) whose weight has a first
// dimension of 7 and 7 * 4 * 4 bytes, with these numbers of 64 bits in their places.
std::string refusal_of_patched(uint64_t dimension, uint64_t bytes) {
  constexpr uint64_t kMark = 1000003;
  TemporaryDirectory directory;
  const fs::path path = directory / "tf_model.h5";
  write_keras(path, Hdf5Format::oldest, [&](MadeFile& made) {
    made.dataset(kWeight, {kMark, 4}, H5T_IEEE_F32LE, {});
  });
  std::string content = read_bytes(path);
  replace_all(content, number(kMark), number(dimension));
  replace_all(content, number(kMark * 16), number(bytes));
  write_bytes(path, content);
  return refusal(path);
}

}  // namespace

TEST_CASE("values in other files: external storage and virtual datasets") {
  TemporaryDirectory directory;
  const std::string secret = (directory / "secret").string();
  write_bytes(secret, std::string(4096, 'x'));
  check_refused(kWeight, "external storage", [&](MadeFile& made) {
    made.dataset(kWeight, {4, 2}, H5T_IEEE_F32LE, {},
                 [&](hid_t properties) { H5Pset_external(properties, secret.c_str(), 0, 32); });
  });
  {
    MadeFile other(directory / "other.h5");
    other.dataset("/d", {4, 2}, H5T_IEEE_F32LE, counting_to(8));
  }
  const hsize_t shape[] = {4, 2};
  const Hdf5Id space(H5Screate_simple(2, shape, nullptr), H5Sclose);
  for (const std::string& source : {(directory / "other.h5").string(), std::string(".")}) {
    TemporaryDirectory files;
    const fs::path path = files / "tf_model.h5";
    write_keras(path, Hdf5Format::newest, [&](MadeFile& made) {
      made.dataset(kWeight, {4, 2}, H5T_IEEE_F32LE, {}, [&](hid_t properties) {
        H5Pset_virtual(properties, space, source.c_str(), "/d", space);
      });
    });
    CHECK(contains(refusal(path), concat("'", kWeight, "': is a virtual dataset")));
  }
}

TEST_CASE("links that are not hard are not followed") {
  TemporaryDirectory directory;
  const std::string other = (directory / "other.h5").string();
  {
    MadeFile made(other);
    made.dataset("/d", {4, 2}, H5T_IEEE_F32LE, counting_to(8));
  }
  check_refused(kLayer, "an external link", [&](MadeFile& made) {
    H5Lcreate_external(other.c_str(), "/d", made, "/bert/w:0", H5P_DEFAULT, H5P_DEFAULT);
  });
  check_refused(kLayer, "a soft link", [&](MadeFile& made) {
    H5Lcreate_soft("/bert", made, "/bert/w:0", H5P_DEFAULT, H5P_DEFAULT);
  });
  for (const char* root : {"model_weights", "elsewhere"}) {
    check_refused("/", concat("its link '", root, "' is an external link"), [&](MadeFile& made) {
      H5Lcreate_external(other.c_str(), "/", made, root, H5P_DEFAULT, H5P_DEFAULT);
    });
  }
  H5L_class_t own{};
  own.version = H5L_LINK_CLASS_T_VERS;
  own.id = H5L_type_t(70);
  own.comment = "own";
  own.trav_func = [](const char*, hid_t, const void*, size_t, hid_t, hid_t) -> hid_t { return -1; };
  REQUIRE(H5Lregister(&own) >= 0);
  check_refused(kLayer, "a user-defined link", [&](MadeFile& made) {
    H5Lcreate_ud(made, "/bert/w:0", H5L_type_t(70), "x", 1, H5P_DEFAULT, H5P_DEFAULT);
  });
  // In dense storage, too.
  check_refused(kLayer, "its link 'z' is a soft link", [&](MadeFile& made) {
    for (int i = 0; i < 40; ++i) made.group(concat("/bert/", i));
    H5Lcreate_soft("/bert", made, "/bert/z", H5P_DEFAULT, H5P_DEFAULT);
  });
}

TEST_CASE("groups that hold themselves") {
  check_refused("/bert/again", "has a second link to it", [](MadeFile& made) {
    H5Lcreate_hard(made, "/bert", made, "/bert/again", H5P_DEFAULT, H5P_DEFAULT);
  });
  check_refused("/bert/up", "has a second link to it", [](MadeFile& made) {
    H5Lcreate_hard(made, "/", made, "/bert/up", H5P_DEFAULT, H5P_DEFAULT);
  });
}

TEST_CASE("types, filters and layouts that are not read") {
  check_refused(kWeight, "variable-length", [](MadeFile& made) {
    const Hdf5Id type(H5Tvlen_create(H5T_IEEE_F32LE), H5Tclose);
    made.dataset(kWeight, {4, 2}, type, {}, with_space);
  });
  check_refused(kWeight, "is not an array of numbers", [](MadeFile& made) {
    const Hdf5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type, 16);
    made.dataset(kWeight, {4, 2}, type, {},
                 [](hid_t properties) { H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY); });
  });
  check_refused(kWeight, "shared or committed", [](MadeFile& made) {
    const Hdf5Id type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
    H5Tcommit2(made, "/bert/type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    made.dataset(kWeight, {4, 2}, type, counting_to(8));
    H5Ldelete(made, "/bert/type", H5P_DEFAULT);
  });
  check_refused("/bert/type", "is not a dataset", [](MadeFile& made) {
    const Hdf5Id type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
    H5Tcommit2(made, "/bert/type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  });
  check_refused(kWeight, "is stored in chunks", [](MadeFile& made) {
    made.dataset(kWeight, {4, 2}, H5T_STD_I32LE, counting_to(8), [](hid_t properties) {
      in_chunks(properties);
      H5Pset_scaleoffset(properties, H5Z_SO_INT, 0);
    });
  });
  check_refused(kWeight, "dimensions", [](MadeFile& made) {
    made.dataset(kWeight, {1, 1, 1, 1, 1, 1, 1, 1, 2}, H5T_IEEE_F32LE, {1, 2});
  });
}

TEST_CASE("datasets that have less than they claim") {
  check_refused(kWeight, "has only 0 bytes of data", [](MadeFile& made) {
    made.dataset(kWeight, {4, 2}, H5T_IEEE_F32LE, {});
  });
}

TEST_CASE("sizes that overflow or lie outside the file") {
  constexpr uint64_t kHalf = uint64_t{1} << 62;
  CHECK(contains(refusal_of_patched(kHalf, 0), "is larger than any file"));
  CHECK(contains(refusal_of_patched(kHalf + 1, 16), "is larger than any file"));
  CHECK(contains(refusal_of_patched(~uint64_t{0}, 0), "has a dimension of"));
  CHECK(contains(refusal_of_patched(uint64_t{1} << 40, uint64_t{1} << 44), "bytes of data"));
}

TEST_CASE("two datasets that share their values") {
  check_refused("/bert/n/", "shares its data with other datasets", [](MadeFile& made) {
    made.dataset("/bert/m/a", {100, 100}, H5T_IEEE_F32LE, counting_to(10000));
    made.group("/bert/n");
    for (int i = 0; i < 3; ++i) {
      H5Lcreate_hard(made, "/bert/m/a", made, concat("/bert/n/", i).c_str(), H5P_DEFAULT,
                     H5P_DEFAULT);
    }
  });
}

TEST_CASE("names that would spoil a terminal") {
  check_refused(kLayer, "has a link with the name '\\x1b[31m'",
                [](MadeFile& made) { made.dataset("/bert/\x1b[31m", {1}, H5T_IEEE_F32LE, {1}); });
  check_refused(kLayer, "has a link with the name '\\xff\\xfe'",
                [](MadeFile& made) { made.dataset("/bert/\xff\xfe", {1}, H5T_IEEE_F32LE, {1}); });
}

TEST_CASE("files that are no files, and other beginnings") {
  TemporaryDirectory directory;
  const fs::path path = directory / "a.h5";
  auto message_of = [&] {
    return error_line(ExitCode::model, [&] { const hdf5::Reader file(path); });
  };
  CHECK(contains(message_of(), "No such file"));
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(contains(message_of(), "is a pipe, a file is needed"));  // and nobody waits for a writer
  fs::remove(path);
  write_bytes(path, "");
  CHECK(contains(message_of(), "is not an HDF5 file"));
  write_bytes(path, std::string("\x89HDF\r\n\x1a\n\x04", 9));
  CHECK(contains(message_of(), "superblock version 4"));
  for (Hdf5Format format : kHdf5Formats) {
    { MadeFile made(path, format); }
    CHECK(message_of().empty());
    const std::string whole = read_bytes(path);
    for (size_t size = whole.size(); size-- > 0;) {
      fs::resize_file(path, size);
      REQUIRE(message_of() != "");
    }
  }
}

TEST_CASE("the files that once got through") {
  for (const auto& [name, reason] : {std::pair("external-passwd-u8", "external storage"),
                                     std::pair("h5-dense-links", "does not match its checksum")}) {
    if (!have_shared(concat("hostile/", name))) return;
    CHECK(contains(refusal(shared_path(concat("hostile/", name))), reason));
  }
}
