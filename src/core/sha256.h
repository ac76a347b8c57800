// SHA-256 (FIPS 180-4), by OpenSSL's libcrypto.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace finetune {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(const void* data, size_t size);
  void update(std::string_view text) { update(text.data(), text.size()); }
  std::string hex();  // the digest of all bytes; call it once, at the end

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string sha256_of(std::string_view text);
std::string sha256_of_file(const std::filesystem::path& path);  // Error(data) if unreadable

}  // namespace finetune
