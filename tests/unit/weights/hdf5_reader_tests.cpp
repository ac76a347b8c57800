// Good HDF5 files of every kind that is read, beside what the HDF5 library makes of them.
#include "../contains.h"
#include "unit/weights/hdf5_maker.h"
#include "unit/weights/weights_test.h"
#include "weights/hdf5/bytes.h"
#include "weights/hdf5/reader.h"

using namespace finetune;
using namespace finetune::test;

namespace {

std::vector<float> floats_of(const hdf5::Reader& file, const hdf5::Dataset& dataset) {
  std::vector<float> values(size_t(dataset.bytes / dataset.type.size), -1.0f);
  file.read_floats(dataset, values.data());
  return values;
}

template <typename T>
T value_of(hdf5::Reader& file, const std::string& name) {
  const std::string bytes = file.attribute("/", name).bytes;
  REQUIRE(bytes.size() == sizeof(T));
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// IEEE's half and Google's bfloat16.
hid_t small_float(size_t exponent_bits, hid_t from) {
  const size_t mantissa_bits = 15 - exponent_bits;
  const hid_t type = H5Tcopy(from);
  H5Tset_fields(type, 15, mantissa_bits, exponent_bits, 0, mantissa_bits);
  H5Tset_precision(type, 16);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, (size_t{1} << (exponent_bits - 1)) - 1);
  return type;
}

}  // namespace

TEST_CASE("HDF5's checksum") {
  using namespace std::string_view_literals;
  CHECK(hdf5::lookup3("") == 0xdeadbeefu);
  CHECK(hdf5::lookup3("Four score and seven years ago"sv) == 0x17770551u);  // its author's example
}

TEST_CASE("groups of few, many and very many links, in every format") {
  TemporaryDirectory directory;
  const fs::path path = directory / "a.h5";
  for (Hdf5Format format : kHdf5Formats) {
    for (int links : {0, 3, 9, 300, 5000}) {
      CAPTURE(links);
      std::vector<std::string> expected;
      {
        MadeFile made(path, format);
        made.group("/g");
        made.dataset("/one", {2}, H5T_IEEE_F32LE, {5, 7});
        for (int i = 0; i < links; ++i) {  // long names: the heap has blocks of every kind
          expected.push_back(concat("link ", i, "ü", std::string(size_t(i % 200), 'x')));
          H5Lcreate_hard(made, "/one", made, ("/g/" + expected.back()).c_str(), H5P_DEFAULT,
                         H5P_DEFAULT);
        }
      }
      std::sort(expected.begin(), expected.end());
      hdf5::Reader file(path);
      CHECK((file.names("/") == std::vector<std::string>{"g", "one"}));
      CHECK((file.names("/g") == expected));
      CHECK(file.is_group("/g"));
      CHECK(!file.is_group("/one"));
      if (links == 0) continue;
      const std::string last = "/g/" + expected.back();
      CHECK((floats_of(file, file.dataset(last)) == std::vector<float>{5, 7}));
    }
  }
}

TEST_CASE("few and many attributes, in every format") {
  TemporaryDirectory directory;
  const fs::path path = directory / "a.h5";
  for (Hdf5Format format : kHdf5Formats) {
    for (int count : {1, 9, 400}) {
      CAPTURE(count);
      {
        MadeFile made(path, format, 512);
        for (int64_t i = 0; i < count; ++i) {
          made.attribute("/", concat("whole ", i), H5T_STD_I64LE, &i);
        }
        const double half = 0.5;
        made.attribute("/", "half", H5T_IEEE_F64LE, &half);
        const Hdf5Id text(H5Tcopy(H5T_C_S1), H5Tclose);
        H5Tset_size(text, 5);
        made.attribute("/", "text", text, "words");
      }
      hdf5::Reader file(path);
      CHECK(file.attribute_names("/").size() == size_t(count) + 2);
      for (int64_t i = 0; i < count; ++i) {
        CHECK(value_of<int64_t>(file, concat("whole ", i)) == i);
      }
      CHECK(value_of<double>(file, "half") == 0.5);
      CHECK(file.attribute("/", "text").bytes == "words");
      CHECK(file.attribute("/", "text").type.kind == hdf5::Type::Kind::text);
    }
  }
}

TEST_CASE("every kind of number, as the library converts it") {
  TemporaryDirectory directory;
  const Hdf5Id half(small_float(5, H5T_IEEE_F32LE), H5Tclose);
  const Hdf5Id half_turned(small_float(5, H5T_IEEE_F32BE), H5Tclose);
  const Hdf5Id brain(small_float(8, H5T_IEEE_F32LE), H5Tclose);
  const hid_t types[] = {
      H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE, half,          half_turned,
      brain,          H5T_STD_I8LE,   H5T_STD_U8LE,   H5T_STD_I16BE,  H5T_STD_U16LE, H5T_STD_I32LE,
      H5T_STD_I32BE,  H5T_STD_U32LE,  H5T_STD_I64LE,  H5T_STD_I64BE,  H5T_STD_U64LE};
  const std::vector<double> values = {0, 1, -1, 100, -100, 0.1, 3e9, -3e9, 1e-6, 6e4, 255, 2.5};
  for (Hdf5Format format : kHdf5Formats) {
    const fs::path path = directory / "a.h5";
    std::vector<std::vector<float>> expected;
    {
      MadeFile made(path, format);
      for (hid_t type : types) {
        const std::string name = concat("/", expected.size());
        made.dataset(name, {3, 4}, type, values);
        expected.push_back(made.values(name));
      }
    }
    hdf5::Reader file(path);
    for (size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      const hdf5::Dataset dataset = file.dataset(concat("/", i));
      CHECK((dataset.shape == std::vector<int64_t>{3, 4}));
      CHECK(same_bits(floats_of(file, dataset), expected[i]));
    }
  }
}

TEST_CASE("contiguous, compact and empty datasets") {
  const std::vector<double> values = counting_to(13 * 7 * 24);
  const std::vector<float> expected(values.begin(), values.end());
  TemporaryDirectory directory;
  const fs::path path = directory / "a.h5";
  for (Hdf5Format format : kHdf5Formats) {
    for (hsize_t user_block : {0, 2048}) {
      {
        MadeFile made(path, format, user_block);
        made.dataset("/plain", {13, 7, 24}, H5T_IEEE_F32LE, values);
        made.dataset("/compact", {2, 3}, H5T_IEEE_F32LE, counting_to(6),
                     [](hid_t properties) { H5Pset_layout(properties, H5D_COMPACT); });
        made.dataset("/empty", {0, 3}, H5T_IEEE_F32LE, {});
      }
      hdf5::Reader file(path);
      CHECK(floats_of(file, file.dataset("/plain")) == expected);
      CHECK((floats_of(file, file.dataset("/compact")) == std::vector<float>{0, 1, 2, 3, 4, 5}));
      CHECK(floats_of(file, file.dataset("/empty")).empty());
    }
  }
}

TEST_CASE("datasets in chunks are refused by name") {
  TemporaryDirectory directory;
  const fs::path path = directory / "a.h5";
  const hsize_t chunk[] = {2, 3}, unbounded[] = {H5S_UNLIMITED, 5};
  auto in_chunks = [&](hid_t properties) { H5Pset_chunk(properties, 2, chunk); };
  auto compressed = [&](hid_t properties) {
    in_chunks(properties);
    H5Pset_shuffle(properties);
    H5Pset_deflate(properties, 6);
    H5Pset_fletcher32(properties);
  };
  for (Hdf5Format format : kHdf5Formats) {
    {
      MadeFile made(path, format);
      made.dataset("/chunks", {7, 5}, H5T_IEEE_F32LE, counting_to(35), in_chunks);
      made.dataset("/compressed", {7, 5}, H5T_IEEE_F32LE, counting_to(35), compressed);
      made.dataset("/grows", {7, 5}, H5T_IEEE_F32LE, counting_to(35), in_chunks, unbounded);
      made.dataset("/missing", {7, 5}, H5T_IEEE_F32LE, {}, in_chunks);
      made.dataset("/huge", {hsize_t{1} << 40, 1 << 20}, H5T_IEEE_F32LE, {}, in_chunks);
    }
    hdf5::Reader file(path);
    for (const char* name : {"/chunks", "/compressed", "/grows", "/missing", "/huge"}) {
      CAPTURE(name);
      CHECK_THROWS_WITH_AS(
          file.dataset(name),
          concat(path.string(), ": '", name,
                 "': is stored in chunks (compressed or resizable), which are not read; h5repack "
                 "-l CONTI -f NONE OLD.h5 NEW.h5 rewrites it")
              .c_str(),
          Error);
    }
  }
}

TEST_CASE("addresses of four bytes") {
  TemporaryDirectory directory;
  const fs::path path = directory / "a.h5";
  const std::vector<double> counted = counting_to(35);
  const std::vector<float> expected(counted.begin(), counted.end());
  for (Hdf5Format format : kHdf5Formats) {
    {
      MadeFile made(path, format, 512, 4);
      for (int i = 0; i < 30; ++i) made.group(concat("/many/", i));
      for (int i = 0; i < 30; ++i) made.mark("/many", concat("mark ", i));
      made.dataset("/plain", {7, 5}, H5T_IEEE_F32LE, counted);
    }
    hdf5::Reader file(path);
    CHECK(file.names("/many").size() == 30);
    CHECK(file.attribute_names("/many").size() == 30);
    CHECK(same_bits(floats_of(file, file.dataset("/plain")), expected));
  }
}

TEST_CASE("bytes of a dataset are read piece by piece") {
  TemporaryDirectory directory;
  const fs::path path = directory / "a.h5";
  {
    MadeFile made(path, Hdf5Format::v18, 512);
    made.dataset("/x", {5, 2}, H5T_IEEE_F32LE, counting_to(10));
  }
  hdf5::Reader file(path);
  const hdf5::Dataset dataset = file.dataset("/x");
  CHECK(dataset.bytes == 40);
  std::vector<float> rows(4);
  file.read_bytes(dataset, 2 * 8, 2 * 8, rows.data());
  CHECK((rows == std::vector<float>{4, 5, 6, 7}));
  CHECK_THROWS_AS(file.dataset("/y"), Error);
  CHECK_THROWS_AS(file.names("/x"), Error);
  CHECK_THROWS_AS(file.dataset("/"), Error);
  CHECK_THROWS_AS(file.attribute("/", "absent"), Error);
}
