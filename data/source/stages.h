// The stages of which open_text() makes a source: each reads the one before it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/source/byte_source.h"
#include "data/source/file_form.h"

namespace finetune {

// A source whose first bytes can be looked at before they are read.
class PeekedSource final : public ByteSource {
 public:
  explicit PeekedSource(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  // What is there of the first bytes. It grows while `wanted` says so and the input has more.
  template <typename Wanted>
  std::string_view peek(Wanted&& wanted) {
    while (!end_ && wanted(std::string_view(beginning_))) more();
    return beginning_;
  }
  size_t read(char* to, size_t size) override;
  double share() const override { return source_->share(); }

 private:
  void more();

  std::unique_ptr<ByteSource> source_;
  std::string beginning_;
  size_t taken_ = 0;  // of the beginning
  bool end_ = false;
};

// The file or stream itself. Error(data) too if a regular file becomes shorter meanwhile.
std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path);

// What `packed` unpacks to. Error(data) for damage, and for a file that ends too early.
std::unique_ptr<ByteSource> unpacked(Packing packing, std::unique_ptr<ByteSource> packed,
                                     std::string name);

// Text of `encoding`, a name for iconv(3), as UTF-8. Error(data) names the line and the bytes that
// have no meaning in it.
std::unique_ptr<ByteSource> converted(const std::string& encoding, std::unique_ptr<ByteSource> text,
                                      std::string name);

// "UTF-16LE" or the like, by a byte order mark or by the zero bytes of Latin text; empty for
// others.
std::string wide_encoding_of(std::string_view beginning);

}  // namespace finetune
