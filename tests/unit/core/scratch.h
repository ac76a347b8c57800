// A directory of its own that goes away with the test.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <iterator>
#include <string>

namespace finetune::test {

struct Scratch {
  std::filesystem::path path;
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "finetune-files-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  size_t entries() const {
    return size_t(std::distance(std::filesystem::directory_iterator(path),
                                std::filesystem::directory_iterator()));
  }
};

}  // namespace finetune::test
