// Seals: the documented checksum, and detection of damage.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../contains.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/sha256.h"
#include "core/threads/parallel.h"
#include "error_line.h"
#include "temporary_directory.h"
#include "train/checkpoint/sealed_file.h"
#include "weights/tensorflow/crc32c.h"

using namespace finetune;
using finetune::test::contains;
using finetune::test::error_line;

namespace {

constexpr size_t kBlock = 1 << 20;

// Three whole blocks and a part of a fourth, each different.
std::string content() {
  std::string text(kSealBytes, '\0');
  for (size_t i = 0; text.size() < 3 * kBlock + 1000; ++i) text += concat(i * i, " ");
  return text;
}

bool accepted(const fs::path& path) {
  return error_line(ExitCode::model, [&] { verify_seal(path); }).empty();
}

}  // namespace

TEST_CASE("a seal is the documented checksum, for any number of threads") {
  test::TemporaryDirectory directory;
  fs::path path = directory / "file";
  std::string bytes = content(), blocks;
  for (size_t at = kSealBytes; at < bytes.size(); at += kBlock) {
    blocks += sha256_of(std::string_view(bytes).substr(at, kBlock));
  }
  int before = threads();
  for (int count : {1, 2, 3, 8}) {
    set_threads(count);
    write_file(path, bytes);
    CHECK(!accepted(path));
    put_seal(path, seal_of(path));
    CHECK(accepted(path));
    CHECK(contains(read_text_file(path).substr(0, kSealBytes), sha256_of(blocks)));
  }
  set_threads(before);
  CHECK(read_text_file(path).substr(kSealBytes) == bytes.substr(kSealBytes));
}

TEST_CASE("damage in any block, exchanged blocks and a resealed neighbour are noticed") {
  test::TemporaryDirectory directory;
  fs::path path = directory / "file";
  write_file(path, content());
  put_seal(path, seal_of(path));
  std::string good = read_text_file(path);
  for (size_t at = kSealBytes; at < good.size(); at += kBlock / 3) {
    std::string bad = good;
    bad[at] = char(bad[at] ^ 1);
    write_file(path, bad);
    CAPTURE(at);
    CHECK(!accepted(path));
  }
  std::string exchanged = good;
  exchanged.replace(kSealBytes, kBlock, good, kSealBytes + kBlock, kBlock);
  exchanged.replace(kSealBytes + kBlock, kBlock, good, kSealBytes, kBlock);
  write_file(path, exchanged);
  CHECK(!accepted(path));
  for (size_t length : {kBlock, good.size() - 1, good.size() - 1000}) {
    write_file(path, good.substr(0, length));
    CHECK(!accepted(path));
  }
  write_file(path, good);
  CHECK(accepted(path));
}

TEST_CASE("a seal is for the bytes that were there when it was made, and no others") {
  test::TemporaryDirectory directory;
  fs::path path = directory / "file";
  std::string bytes = content();
  write_file(path, bytes);
  const std::string seal = seal_of(path);
  CHECK(seal.size() == kSealBytes);
  CHECK(read_text_file(path) == bytes);
  bytes[kSealBytes + kBlock] = char(bytes[kSealBytes + kBlock] ^ 1);
  write_file(path, bytes);
  put_seal(path, seal);
  CHECK(!accepted(path));
  // A changed length is detected at once.
  write_file(path, bytes + "x");
  CHECK_THROWS_AS(put_seal(path, seal), Error);
  CHECK_THROWS_AS(put_seal(directory / "absent", seal), Error);
}

TEST_CASE("the sums of a file's parts are those of their bytes, wherever they are cut") {
  test::TemporaryDirectory directory;
  fs::path path = directory / "file";
  const std::string bytes = content();
  write_file(path, bytes);
  const auto sum = [&](uint64_t begin, uint64_t end) {
    end = std::min<uint64_t>(end, bytes.size());
    return crc32c(reinterpret_cast<const uint8_t*>(bytes.data()) + begin, size_t(end - begin));
  };
  // Neighbours, gaps, an empty one, parts inside a block, across several and beyond the end.
  std::vector<FilePart> parts = {{kSealBytes, kSealBytes + 1},
                                 {kSealBytes + 1, kSealBytes + 70001},
                                 {80000, 80000},
                                 {80000, 80007},
                                 {kBlock - 3, kBlock + kSealBytes},
                                 {kBlock + kSealBytes, 3 * kBlock + 5},
                                 {3 * kBlock + 600, 3 * kBlock + 601},
                                 {3 * kBlock + 700, kToTheEnd}};
  const std::string seal = seal_of(path);
  const int before = threads();
  for (int count : {1, 2, 3, 8}) {
    set_threads(count);
    for (FilePart& part : parts) part.crc32c = 0;
    CHECK(seal_of(path, parts) == seal);
    for (const FilePart& part : parts) {
      CAPTURE(part.begin);
      CHECK(part.crc32c == sum(part.begin, part.end));
    }
    const std::vector<uint32_t> again = crc32c_of(path, parts);
    for (size_t i = 0; i < parts.size(); ++i) CHECK(again[i] == parts[i].crc32c);
  }
  set_threads(before);
}
