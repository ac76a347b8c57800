// Opens an input as text: detects packing and encoding from its first bytes and chains the stages.
#include "data/source/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <vector>

#include "core/error.h"
#include "core/files/descriptor.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "data/source/stages.h"
#include "data/source/temporary_copy.h"

namespace finetune {
namespace {

constexpr size_t kPeekBlock = 4 << 10;
constexpr size_t kCopiedAtOnce = 256 << 10;

class DescriptorSource final : public ByteSource {
 public:
  explicit DescriptorSource(const fs::path& path) : name_(input_name(path)) {
    require_stream(path);
    descriptor_ =
        Descriptor(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (descriptor_.number() < 0 || ::fstat(descriptor_.number(), &info) != 0) {
      throw system_failure(name_, errno, ExitCode::data);
    }
    if (path != "-" && S_ISREG(info.st_mode)) size_ = expected_ = uint64_t(info.st_size);
  }

  size_t read(char* to, size_t size) override {
    for (;;) {
      const ssize_t count = ::read(descriptor_.number(), to, size);
      if (count > 0) expected_ -= std::min(expected_, uint64_t(count));
      if (count == 0 && expected_ > 0) {
        throw data_error(name_, ": became shorter while it was read");
      }
      if (count >= 0) return size_t(count);
      if (errno != EINTR) throw system_failure(name_, errno, ExitCode::data, "cannot be read: ");
    }
  }

  double share() const override {
    return size_ > 0 ? double(size_ - expected_) / double(size_) : -1;
  }

 private:
  std::string name_;
  Descriptor descriptor_;
  uint64_t size_ = 0;      // of a regular file at opening
  uint64_t expected_ = 0;  // bytes left to read
};

// The conversions that an input needs to become UTF-8 text.
struct Needs {
  Packing packing = Packing::none;
  std::string encoding{};  // empty: already UTF-8

  bool nothing() const { return packing == Packing::none && encoding.empty(); }
};

bool is_utf8_name(const std::string& encoding) {
  std::string upper = encoding;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return char(std::toupper(c)); });
  return upper == "UTF-8" || upper == "UTF8";
}

// Adds the stages that `bytes` needs and records them in `needs`.
std::unique_ptr<ByteSource> stages(std::unique_ptr<ByteSource> bytes, const fs::path& path,
                                   const std::string& encoding, Needs& needs) {
  const std::string name = input_name(path);
  auto source = std::make_unique<PeekedSource>(std::move(bytes));
  const std::string_view beginning = source->peek(may_be_form);
  if (const std::string advice = advice_for_form(beginning, name); !advice.empty()) {
    throw data_error(name, ": ", advice);
  }
  needs.packing = packing_of(beginning);
  if (needs.packing != Packing::none) {
    source = std::make_unique<PeekedSource>(unpacked(needs.packing, std::move(source), name));
    const std::string_view inside = source->peek(may_be_form);
    if (packing_of(inside) != Packing::none) throw data_error(name, ": is packed twice");
    const std::string inner = unpacked_name(name).string();
    if (const std::string advice = advice_for_form(inside, inner); !advice.empty()) {
      throw data_error(name, ": what it unpacks to ", advice);
    }
  }
  if (encoding != kAutoEncoding) {
    if (!is_utf8_name(encoding)) needs.encoding = encoding;
  } else {
    // Peeks at as few bytes as possible: the writer of a pipe may wait for an answer.
    needs.encoding =
        wide_encoding_of(source->peek([](std::string_view b) { return b.size() < 4; }));
  }
  if (needs.encoding.empty()) return source;
  return converted(needs.encoding, std::move(source), name);
}

}  // namespace

size_t PeekedSource::read(char* to, size_t size) {
  if (taken_ == beginning_.size()) return end_ ? 0 : source_->read(to, size);
  const size_t count = beginning_.copy(to, size, taken_);
  taken_ += count;
  if (taken_ == beginning_.size()) beginning_ = {}, taken_ = 0;
  return count;
}

void PeekedSource::more() {
  const size_t before = beginning_.size();
  beginning_.resize(before + kPeekBlock);
  const size_t count = source_->read(&beginning_[before], kPeekBlock);
  beginning_.resize(before + count);
  end_ = count == 0;
}

std::unique_ptr<ByteSource> open_bytes(const fs::path& path) {
  return std::make_unique<DescriptorSource>(path);
}

std::unique_ptr<ByteSource> open_text(const fs::path& path, const std::string& encoding) {
  Needs needs;
  return stages(open_bytes(path), path, encoding, needs);
}

InputFile as_text(InputFile file, const std::string& encoding) {
  Needs needs;
  const auto source = stages(open_bytes(file.content), file.name, encoding, needs);
  if (needs.nothing()) return file;
  auto copy = std::make_shared<TemporaryCopy>(file.name);
  std::vector<char> block(kCopiedAtOnce);
  while (const size_t count = source->read(block.data(), block.size())) {
    copy->write({block.data(), count});
  }
  file.content = copy->path();
  file.copy = std::move(copy);
  return file;
}

std::string beginning_of_text(const InputFile& file, size_t size) {
  Needs needs;
  const auto source =
      stages(open_bytes(file.content), file.name, std::string(kAutoEncoding), needs);
  std::string text(size, '\0');
  size_t have = 0;
  while (have < size) {
    const size_t count = source->read(&text[have], size - have);
    if (count == 0) break;
    have += count;
  }
  text.resize(have);
  return text;
}

fs::path unpacked_name(const fs::path& name) {
  for (const std::string_view suffix : {".gz", ".zst", ".zstd"}) {
    if (ends_with_ignoring_case(name.native(), suffix)) {
      return name.native().substr(0, name.native().size() - suffix.size());
    }
  }
  return name;
}

}  // namespace finetune
