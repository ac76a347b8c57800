// Unpacks gzip and Zstandard, block by block.
#include <zlib.h>
#include <zstd.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/source/stages.h"

namespace finetune {
namespace {

constexpr size_t kPackedBlock = 64 << 10;
// No real table unpacks to this many times its size. A file that does would fill memory or disk.
constexpr uint64_t kMostRatio = 200;
// the ratio is checked only beyond this size
constexpr uint64_t kUnlimitedBytes = uint64_t{64} << 20;
// A frame may ask for a window of up to 2^27 bytes (128 MiB), the limit of the zstd program too.
constexpr int kMostWindowLog = 27;

// The block of packed bytes in memory.
class PackedBlocks {
 public:
  explicit PackedBlocks(std::unique_ptr<ByteSource> source)
      : source_(std::move(source)), block_(kPackedBlock) {}
  // Returns false at the end.
  bool more() {
    size_ = source_->read(block_.data(), block_.size());
    packed_ += size_;
    return size_ > 0;
  }
  // Counts unpacked bytes. Error(data) if there are too many.
  void note_unpacked(uint64_t size, const std::string& name) {
    unpacked_ += size;
    if (unpacked_ <= kUnlimitedBytes || unpacked_ / kMostRatio <= packed_) return;
    throw data_error(name, ": unpacks to more than ", kMostRatio, " times its size, ",
                     unpacked_ >> 20, " MiB so far; if it is what you mean, unpack it first");
  }
  double share() const { return source_->share(); }
  char* data() { return block_.data(); }
  size_t size() const { return size_; }

 private:
  std::unique_ptr<ByteSource> source_;
  std::vector<char> block_;
  size_t size_ = 0;
  uint64_t packed_ = 0, unpacked_ = 0;
};

Error cut_short(const std::string& name) {
  return data_error(name, ": the packed file ends too early; is it cut short?");
}

class GzipSource final : public ByteSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> packed, std::string name)
      : blocks_(std::move(packed)), name_(std::move(name)) {
    constexpr int kGzipAlone = 15 + 16;
    if (::inflateInit2(&state_, kGzipAlone) != Z_OK) {
      throw device_error(name_, ": no memory to unpack it");
    }
  }
  ~GzipSource() override { ::inflateEnd(&state_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  double share() const override { return blocks_.share(); }

  size_t read(char* to, size_t size) override {
    const auto most = uInt(std::min(size, size_t{1} << 30));
    state_.next_out = reinterpret_cast<Bytef*>(to);
    state_.avail_out = most;
    while (state_.avail_out == most) {
      if (state_.avail_in == 0) {
        if (!blocks_.more()) {
          if (inside_) throw cut_short(name_);
          return 0;
        }
        state_.next_in = reinterpret_cast<Bytef*>(blocks_.data());
        state_.avail_in = uInt(blocks_.size());
      }
      if (!inside_) begin_member();
      step();
    }
    blocks_.note_unpacked(most - state_.avail_out, name_);
    return most - state_.avail_out;
  }

 private:
  // Members follow one another; the last one may be followed by zeros, as on tapes.
  void begin_member() {
    while (members_ > 0 && state_.avail_in > 0 && *state_.next_in == 0) {
      ++state_.next_in;
      --state_.avail_in;
    }
    if (state_.avail_in == 0) return;
    if (members_ > 0 && ::inflateReset(&state_) != Z_OK) throw damaged();
    inside_ = true;
  }
  void step() {
    if (!inside_) return;
    const int status = ::inflate(&state_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      inside_ = false;
      ++members_;
    } else if (status == Z_MEM_ERROR) {
      throw device_error(name_, ": no memory to unpack it");
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw damaged();
    }
  }
  Error damaged() const {
    return data_error(name_, ": the gzip file is damaged: ",
                      state_.msg ? state_.msg : "its contents contradict each other");
  }

  PackedBlocks blocks_;
  std::string name_;
  z_stream state_{};
  bool inside_ = false;  // in a member
  int64_t members_ = 0;
};

class ZstdSource final : public ByteSource {
 public:
  ZstdSource(std::unique_ptr<ByteSource> packed, std::string name)
      : blocks_(std::move(packed)), name_(std::move(name)), state_(::ZSTD_createDStream()) {
    if (!state_ || ::ZSTD_isError(::ZSTD_DCtx_setParameter(state_.get(), ZSTD_d_windowLogMax,
                                                           kMostWindowLog))) {
      throw device_error(name_, ": no memory to unpack it");
    }
  }

  double share() const override { return blocks_.share(); }

  size_t read(char* to, size_t size) override {
    ZSTD_outBuffer out{to, size, 0};
    while (out.pos == 0) {
      // Write pending output before reading more input.
      if (in_.pos == in_.size && !full_) {
        if (!blocks_.more()) {
          if (inside_) throw cut_short(name_);
          return 0;
        }
        in_ = {blocks_.data(), blocks_.size(), 0};
      }
      const size_t status = ::ZSTD_decompressStream(state_.get(), &out, &in_);
      if (::ZSTD_isError(status)) {
        throw data_error(name_, ": the zstd file is damaged: ", ::ZSTD_getErrorName(status));
      }
      inside_ = status != 0;
      full_ = inside_ && out.pos == out.size;
    }
    blocks_.note_unpacked(out.pos, name_);
    return out.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* state) const { ::ZSTD_freeDStream(state); }
  };

  PackedBlocks blocks_;
  std::string name_;
  std::unique_ptr<ZSTD_DStream, Free> state_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool inside_ = false;  // in a frame
  bool full_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> unpacked(Packing packing, std::unique_ptr<ByteSource> packed,
                                     std::string name) {
  if (packing == Packing::gzip) {
    return std::make_unique<GzipSource>(std::move(packed), std::move(name));
  }
  return std::make_unique<ZstdSource>(std::move(packed), std::move(name));
}

}  // namespace finetune
