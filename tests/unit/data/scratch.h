// A directory of its own for a test's files; it goes away with the test.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/error.h"

namespace finetune::test {

class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "finetune-data-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::filesystem::path path(const std::string& name) const { return path_ / name; }
  std::filesystem::path write(const std::string& name, std::string_view text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  // A message without the directory's name.
  std::string plain(std::string message) const {
    std::string prefix = path_.string() + "/";
    for (size_t at; (at = message.find(prefix)) != std::string::npos;) {
      message.erase(at, prefix.size());
    }
    return message;
  }

 private:
  std::filesystem::path path_;
};

// The message of the Error(data) that `action` throws, file names without the directory.
template <typename Action>
std::string data_fault(const Scratch& scratch, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::data);
    std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    return scratch.plain(message);
  }
  return "no error";
}

}  // namespace finetune::test
