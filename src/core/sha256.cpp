// SHA-256 of texts, byte streams and files, by libcrypto's low-level functions. They allocate
// nothing and cannot fail. The recommended EVP functions load providers at first use, and crash
// there if memory is short.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "core/sha256.h"

#include <openssl/sha.h>

#include "core/error.h"
#include "core/files/files.h"

namespace finetune {

struct Sha256::Context {
  SHA256_CTX sha;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  FINETUNE_CHECK(SHA256_Init(&context_->sha) == 1);
}

Sha256::~Sha256() = default;

void Sha256::update(const void* data, size_t size) {
  FINETUNE_CHECK(SHA256_Update(&context_->sha, data, size) == 1);
}

std::string Sha256::hex() {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  FINETUNE_CHECK(SHA256_Final(digest, &context_->sha) == 1);
  std::string out;
  for (unsigned char byte : digest) {
    constexpr char digits[] = "0123456789abcdef";
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

std::string sha256_of(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.hex();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  std::string sum = sha256_of(file.text());
  file.check_intact();
  return sum;
}

}  // namespace finetune
