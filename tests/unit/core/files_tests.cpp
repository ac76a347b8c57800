#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "core/files.h"
#include "core/sha256.h"

using namespace finetune;

namespace {

// A directory of its own that goes away with the test.
struct Scratch {
  fs::path path;
  Scratch() {
    std::string name = (fs::temp_directory_path() / "finetune-files-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Scratch() { fs::remove_all(path); }
  size_t entries() const {
    return size_t(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

}  // namespace

TEST_CASE("AtomicFile appears whole on commit") {
  Scratch scratch;
  fs::path path = scratch.path / "file";
  std::string large(3 << 20, 'x');  // more than the buffer
  {
    AtomicFile file(path);
    file.write("begin ");
    file.write(large);
    CHECK_FALSE(fs::exists(path));
    file.commit();
  }
  CHECK(read_text_file(path) == "begin " + large);
  CHECK(scratch.entries() == 1);
  write_file(path, "new");
  CHECK(read_text_file(path) == "new");
  CHECK(scratch.entries() == 1);
}

TEST_CASE("AtomicFile leaves nothing, and the old file as it was, without commit") {
  Scratch scratch;
  fs::path path = scratch.path / "file";
  write_file(path, "old");
  try {
    AtomicFile file(path);
    file.write(std::string(2 << 20, 'x'));
    throw std::runtime_error("in the middle");
  } catch (const std::runtime_error&) {
  }
  CHECK(read_text_file(path) == "old");
  CHECK(scratch.entries() == 1);
}

TEST_CASE("AtomicFile that cannot be renamed leaves nothing") {
  Scratch scratch;
  fs::path path = scratch.path / "taken";
  fs::create_directory(path);
  {
    AtomicFile file(path);
    file.write("x");
    CHECK_THROWS_AS(file.commit(), Error);
  }
  CHECK(scratch.entries() == 1);
  CHECK_THROWS_AS(AtomicFile(scratch.path / "absent" / "file"), Error);
}

TEST_CASE("MappedFile and read_text_file name the fault") {
  Scratch scratch;
  fs::path absent = scratch.path / "absent";
  try {
    MappedFile file(absent);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::data);
    CHECK(error.what() == absent.string() + ": No such file or directory");
  }
  try {
    MappedFile file(scratch.path, ExitCode::model);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::model);
    CHECK(error.what() == scratch.path.string() + ": is a directory, a file is needed");
  }
  CHECK_THROWS_WITH_AS(read_text_file(scratch.path),
                       (scratch.path.string() + ": is a directory, a file is needed").c_str(),
                       Error);
  write_file(absent, "");
  CHECK(MappedFile(absent).size() == 0);
  CHECK(MappedFile(absent).text() == "");
  write_file(absent, "text");
  MappedFile first(absent);
  MappedFile second(std::move(first));
  CHECK(second.text() == "text");
}

TEST_CASE("sha256 gives the published digests") {  // FIPS 180-4 examples
  CHECK(sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 pieces;
  pieces.update("abcdbcdecdefdefgefghfghi");
  pieces.update("ghijhijkijkljklmklmnlmnomnopnopq");
  CHECK(pieces.hex() == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Scratch scratch;
  write_file(scratch.path / "file", "abc");
  CHECK(sha256_of_file(scratch.path / "file") == sha256_of("abc"));
}

TEST_CASE("require_free_space refuses what cannot fit") {
  Scratch scratch;
  require_free_space(scratch.path, 1, "a byte");
  CHECK_THROWS_AS(require_free_space(scratch.path, uint64_t{1} << 62, "a checkpoint"), Error);
}
