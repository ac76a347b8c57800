// What the tests of classification share: a tokenizer that needs no files, and files in a folder of
// their own.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "tokenizer/tokenizer.h"

namespace finetune::test {

// Words between spaces; the id of a word is 200 + its length.
class WordTokenizer final : public Tokenizer {
 public:
  WordTokenizer() { special_ = {101, 102, 0, 100}; }
  void encode(std::string_view text, TokenBuffer& out) const override {
    uint32_t offset = 0;
    for (std::string_view word : split(text, ' ')) {
      uint32_t end = offset + uint32_t(word.size());
      if (!word.empty()) {
        out.ids.push_back(200 + int32_t(word.size()));
        out.begins.push_back(offset);
        out.ends.push_back(end);
      }
      offset = end + 1;
    }
  }
  int32_t vocabulary_size() const override { return 1000; }
  std::string_view token(int32_t) const override { return ""; }
  std::vector<std::filesystem::path> files() const override { return {}; }
};

inline const WordTokenizer kTokenizer;

// A folder that is removed at the end; files are named relative to it in messages.
class Folder {
 public:
  Folder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            concat("finetune-tasks-", ::getpid(), "-", ++count);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::filesystem::path path(std::string_view name) const { return path_ / name; }
  std::filesystem::path file(std::string_view name, std::string_view text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string text(std::string_view name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::filesystem::path path_;
};

struct Failure {
  ExitCode code = ExitCode::done;
  std::string message;
};

// The Error that `body` throws; its message without the folder's path.
template <typename Body>
Failure failure_of(const Folder& folder, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    std::string message = error.what(), prefix = folder.path("").string();
    for (size_t at; (at = message.find(prefix)) != std::string::npos;) {
      message.erase(at, prefix.size());
    }
    return {error.code(), message};
  }
  return {};
}

}  // namespace finetune::test
