#include "core/sha256.h"

#include <openssl/evp.h>

#include "core/error.h"
#include "core/files.h"

namespace finetune {

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  FINETUNE_CHECK(context_->evp && EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::update(const void* data, size_t size) {
  FINETUNE_CHECK(EVP_DigestUpdate(context_->evp, data, size) == 1);
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  FINETUNE_CHECK(EVP_DigestFinal_ex(context_->evp, digest, &length) == 1);
  std::string out;
  for (unsigned int i = 0; i < length; ++i) {
    constexpr char digits[] = "0123456789abcdef";
    out += digits[digest[i] >> 4];
    out += digits[digest[i] & 15];
  }
  return out;
}

std::string sha256_of(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.hex();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  MappedFile file(path);
  return sha256_of(file.text());
}

}  // namespace finetune
