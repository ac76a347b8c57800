// The stages that open_text() chains: each reads from the one before it.
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
  // Returns the first bytes read so far, reading more while wanted() returns true and the input has
  // more.
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
  size_t taken_ = 0;  // bytes of the beginning already read
  bool end_ = false;
};

// Opens the file or stream itself. Error(data) also if a regular file gets shorter while it is
// read.
std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path);

// Unpacks `packed`. Error(data) for damaged or truncated data.
std::unique_ptr<ByteSource> unpacked(Packing packing, std::unique_ptr<ByteSource> packed,
                                     std::string name);

// Converts text from `encoding`, a name for iconv(3), to UTF-8. Error(data) names the line and the
// bytes that are invalid in that encoding.
std::unique_ptr<ByteSource> converted(const std::string& encoding, std::unique_ptr<ByteSource> text,
                                      std::string name);

// Returns "UTF-16LE" or similar, detected by a byte order mark or by the zero bytes of Latin text,
// else "".
std::string wide_encoding_of(std::string_view beginning);

}  // namespace finetune
