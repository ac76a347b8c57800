// Every byte of small HDF5 files is changed in turn: reading gives values or an Error(model).
// Checksums are made to match again. FINETUNE_FUZZ=N adds N rounds of
// several random changes for each file.
#include <fcntl.h>

#include <cstdlib>

#include "core/numeric/philox.h"
#include "unit/weights/hdf5_maker.h"
#include "unit/weights/hdf5_sums.h"
#include "unit/weights/weights_test.h"
#include "weights/hdf5/reader.h"
#include "weights/hdf5/types.h"

using namespace finetune;
using namespace finetune::test;

namespace {

// Old and new groups, few and many links and attributes, every layout that is read.
void write_subject(const fs::path& path, Hdf5Format format) {
  MadeFile made(path, format, 512);
  made.mark("/", "layer_names");
  made.dataset("/plain", {3, 2}, H5T_IEEE_F32LE, counting_to(6));
  made.dataset("/turned", {2}, H5T_IEEE_F64BE, counting_to(2));
  made.dataset("/compact", {2, 2}, H5T_STD_I16LE, counting_to(4),
               [](hid_t properties) { H5Pset_layout(properties, H5D_COMPACT); });
  for (int size : {2, 3, 5}) {
    made.dataset(concat("/square", size), {hsize_t(size), hsize_t(size)}, H5T_IEEE_F32LE,
                 counting_to(size * size));
  }
  for (int i = 0; i < 12; ++i) {
    H5Lcreate_hard(made, "/plain", made, concat("/many/", i).c_str(), H5P_DEFAULT, H5P_DEFAULT);
    if (i == 0) made.group("/many");
    made.mark("/many", concat("mark ", i));
  }
}

void read_group(hdf5::Reader& file, const std::string& group) {
  for (const std::string& name : file.attribute_names(group)) file.attribute(group, name);
  for (const std::string& name : file.names(group)) {
    const std::string path = group == "/" ? group + name : group + "/" + name;
    if (file.is_group(path)) {
      read_group(file, path);
      continue;
    }
    const hdf5::Dataset dataset = file.dataset(path);
    REQUIRE(dataset.bytes <= file.file_bytes());
    if (!hdf5::is_number(dataset.type)) continue;
    std::vector<float> values(size_t(dataset.bytes / dataset.type.size));
    file.read_floats(dataset, values.data());
  }
}

bool reads_whole(const fs::path& path) {
  try {
    hdf5::Reader file(path);
    read_group(file, "/");
    return true;
  } catch (const Error& error) {
    const std::string_view message = error.what();
    REQUIRE(error.code() == ExitCode::model);
    REQUIRE(message.starts_with(path.string()));
    REQUIRE(message.find('\n') == message.npos);
    REQUIRE(message.size() < path.string().size() + 400);
    return false;
  }
}

// A file that is changed in place.
class Changed {
 public:
  Changed(const fs::path& path, Hdf5Format format) : path_(path) {
    write_subject(path, format);
    whole_ = read_bytes(path);
    sealed_ = find_sealed(whole_);
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    REQUIRE(descriptor_ >= 0);
  }
  ~Changed() { ::close(descriptor_); }

  const std::string& whole() const { return whole_; }
  size_t sealed_structures() const { return sealed_.size(); }

  // Whether it reads with other bytes at these places.
  bool reads(const std::vector<std::pair<size_t, char>>& changes, bool mended) {
    std::string bytes = whole_;
    for (auto [at, value] : changes) {
      bytes[at] = value;
      for (const Sealed& structure : sealed_) {
        if (mended && structure.has(at)) structure.mend(bytes);
      }
    }
    const auto [begin, end] = difference(bytes);
    put(bytes, begin, end);
    const bool result = reads_whole(path_);
    put(whole_, begin, end);
    return result;
  }

 private:
  std::pair<size_t, size_t> difference(const std::string& bytes) const {
    size_t begin = 0, end = bytes.size();
    while (begin < end && bytes[begin] == whole_[begin]) ++begin;
    while (begin < end && bytes[end - 1] == whole_[end - 1]) --end;
    return {begin, end};
  }

  void put(const std::string& bytes, size_t begin, size_t end) {
    REQUIRE(::pwrite(descriptor_, &bytes[begin], end - begin, off_t(begin)) ==
            ssize_t(end - begin));
  }

  fs::path path_;
  std::string whole_;
  std::vector<Sealed> sealed_;
  int descriptor_ = -1;
};

int rounds() {
  const char* count = std::getenv("FINETUNE_FUZZ");
  return count ? int(parse_int(count).value_or(0)) : 300;
}

class Dice {
 public:
  explicit Dice(uint32_t stream) : stream_(stream) {}
  uint32_t below(uint32_t bound) {
    return uint32_t(unit_interval(philox({7, 9}, {stream_, next_++, 0, 0})[0]) * bound);
  }

 private:
  uint32_t stream_, next_ = 0;
};

}  // namespace

TEST_CASE("any byte of an HDF5 file may be any other") {
  TemporaryDirectory directory;
  for (Hdf5Format format : kHdf5Formats) {
    Changed file(directory / "a.h5", format);
    CAPTURE(int(format));
    REQUIRE(file.reads({}, false));
    CHECK(file.sealed_structures() >= (format == Hdf5Format::oldest ? 0 : 20));
    const std::string& whole = file.whole();
    int refused = 0, changed = 0;
    for (size_t at = 512; at < whole.size(); ++at) {
      if (whole.compare(at, 16, std::string(16, '\0')) == 0 && at % 16 != 0) continue;
      const char extremes[] = {'\0', '\xff', '\x7f', '\x80', '\1'};
      const bool flip = (at ^ at / 8) % 2 == 0;
      const char value = flip ? char(whole[at] ^ (1 << (at / 2 % 8))) : extremes[at % 5];
      refused += !file.reads({{at, value}}, true);
      changed += 1;
    }
    CHECK(refused > changed / 20);
    CHECK(refused < changed);
  }
}

TEST_CASE("several bytes of an HDF5 file may be any others") {
  TemporaryDirectory directory;
  uint32_t stream = 0;
  for (Hdf5Format format : kHdf5Formats) {
    Changed file(directory / "a.h5", format);
    for (int round = 0; round < rounds(); ++round) {
      Dice dice(stream++);
      CAPTURE(round);
      std::vector<std::pair<size_t, char>> changes;
      const uint32_t size = uint32_t(file.whole().size());
      for (uint32_t i = 0, count = 1 + dice.below(6); i < count; ++i) {
        size_t at = dice.below(size);
        while (file.whole()[at] == '\0' && dice.below(4) != 0) at = dice.below(size);
        const uint32_t run = dice.below(4) == 0 ? 1 + dice.below(8) : 1;
        for (uint32_t k = 0; k < run && at + k < size; ++k) {
          changes.push_back({at + k, char(dice.below(3) == 0 ? 0xFF : dice.below(256))});
        }
      }
      file.reads(changes, dice.below(8) != 0);
    }
  }
}
