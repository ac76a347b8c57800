#include <doctest/doctest.h>

#include <string>

#include "../contains.h"
#include "core/error.h"
#include "core/files.h"
#include "core/parallel.h"
#include "core/sha256.h"
#include "temporary_directory.h"
#include "train/sealed_file.h"

using namespace finetune;
using finetune::test::contains;

namespace {

constexpr size_t kBlock = 1 << 20;

// Three whole blocks and a part of a fourth, each different.
std::string content() {
  std::string text(kSealBytes, '\0');
  for (size_t i = 0; text.size() < 3 * kBlock + 1000; ++i) text += concat(i * i, " ");
  return text;
}

bool accepted(const fs::path& path) {
  try {
    verify_seal(path);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::model);
    return false;
  }
  return true;
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
    seal_file(path);
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
  seal_file(path);
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
