// Converts text of other encodings to UTF-8 with iconv(3).
#include <iconv.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/option_advice.h"
#include "data/source/stages.h"

namespace finetune {
namespace {

constexpr size_t kInputBlock = 64 << 10;
constexpr size_t kLongestCharacter = 16;  // in any encoding, before and after conversion

class Converter {
 public:
  explicit Converter(const std::string& from) : state_(::iconv_open("UTF-8", from.c_str())) {}
  ~Converter() {
    if (known()) ::iconv_close(state_);
  }
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;

  bool known() const { return state_ != reinterpret_cast<iconv_t>(-1); }
  iconv_t get() const { return state_; }

 private:
  iconv_t state_;
};

class ConvertedSource final : public ByteSource {
 public:
  ConvertedSource(const std::string& encoding, std::unique_ptr<ByteSource> text, std::string name)
      : encoding_(encoding),
        source_(std::move(text)),
        name_(std::move(name)),
        converter_(encoding),
        block_(kInputBlock) {
    require_encoding(encoding);
  }

  size_t read(char* to, size_t size) override {
    if (size < kLongestCharacter) return read_few(to, size);
    return convert(to, size);
  }

  double share() const override { return source_->share(); }

 private:
  // The caller's buffer may be too small for one character, so convert into `few_` first.
  size_t read_few(char* to, size_t size) {
    if (few_.empty()) {
      few_.resize(kLongestCharacter);
      few_.resize(convert(few_.data(), few_.size()));
    }
    const size_t count = few_.copy(to, size);
    few_.erase(0, count);
    return count;
  }

  size_t convert(char* to, size_t size) {
    if (!few_.empty()) return read_few(to, size);
    char* out = to;
    while (out == to) {
      if (begin_ == end_ || incomplete_) {
        std::memmove(block_.data(), block_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
        const size_t count = source_->read(block_.data() + end_, block_.size() - end_);
        if (count == 0) {
          if (end_ > 0) throw meaningless("the text ends inside a character");
          return 0;
        }
        end_ += count;
      }
      char* in = block_.data() + begin_;
      size_t left = end_ - begin_, room = size - size_t(out - to);
      const size_t status = ::iconv(converter_.get(), &in, &left, &out, &room);
      const int error = errno;
      begin_ = end_ - left;
      line_ += std::count(to, out, '\n');
      incomplete_ = status == size_t(-1) && error == EINVAL;
      if (status == size_t(-1) && error == EILSEQ && out == to) throw meaningless("");
    }
    return size_t(out - to);
  }

  Error meaningless(const char* what) const {
    std::string bytes;
    for (size_t i = begin_; i < std::min(end_, begin_ + 2); ++i) {
      char hex[8];
      std::snprintf(hex, sizeof hex, " 0x%02X", static_cast<unsigned char>(block_[i]));
      bytes += hex;
    }
    return data_error(name_, ":", line_, ": the bytes", bytes, " are not ", encoding_, " text",
                      *what ? concat(" (", what, ")") : std::string(),
                      option_advice("; --encoding names the file's encoding"));
  }

  std::string encoding_;
  std::unique_ptr<ByteSource> source_;
  std::string name_;
  Converter converter_;
  std::vector<char> block_;
  size_t begin_ = 0, end_ = 0;  // bytes of the block not yet converted
  bool incomplete_ = false;     // these bytes are less than a character
  int64_t line_ = 1;
  std::string few_;  // converted, not yet read
};

}  // namespace

void require_encoding(const std::string& encoding) {
  if (encoding == kAutoEncoding) return;
  // iconv takes words after a slash as flags, and an empty name as the locale's encoding.
  if (encoding.empty() || encoding.find('/') != std::string::npos || !Converter(encoding).known()) {
    throw usage_error("--encoding ", in_quotes(encoding),
                      ": is not known; auto, utf-8, utf-16, windows-1252, iso-8859-15 and what "
                      "iconv -l lists are");
  }
}

std::unique_ptr<ByteSource> converted(const std::string& encoding, std::unique_ptr<ByteSource> text,
                                      std::string name) {
  return std::make_unique<ConvertedSource>(encoding, std::move(text), std::move(name));
}

std::string wide_encoding_of(std::string_view beginning) {
  using namespace std::string_view_literals;
  if (beginning.starts_with("\xFF\xFE\0\0"sv) || beginning.starts_with("\0\0\xFE\xFF"sv)) {
    return "UTF-32";
  }
  if (beginning.starts_with("\xFF\xFE"sv) || beginning.starts_with("\xFE\xFF"sv)) return "UTF-16";
  const std::string_view text = beginning.substr(0, 1024);
  size_t zeros[2] = {0, 0};
  for (size_t i = 0; i < text.size(); ++i) zeros[i % 2] += text[i] == '\0';
  const size_t more = std::max(zeros[0], zeros[1]), fewer = std::min(zeros[0], zeros[1]);
  if (text.size() < 4 || more * 4 < text.size() || fewer * 4 > more) return {};
  return zeros[1] > zeros[0] ? "UTF-16LE" : "UTF-16BE";
}

}  // namespace finetune
