// The bytes of an HDF5 file, none of which are trusted. Every read is checked against the file's
// size, and all structures together may cost no more than a small multiple of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/files/descriptor.h"
#include "core/text/text.h"

namespace finetune::hdf5 {

// Why a file is refused. Reader turns it into an Error(model) with the file and the object.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Parts>
Fault fault(const Parts&... parts) {
  return Fault(concat(parts...));
}

constexpr uint64_t kUndefined = ~uint64_t{0};  // the address of an absent part

// The widths of addresses and lengths in the file: 4 or 8 bytes.
struct Widths {
  size_t address = 8;
  size_t length = 8;
};

// Reads little-endian fields in order; `what` names the structure in messages.
class Cursor {
 public:
  Cursor(std::string_view bytes, Widths widths, const char* what)
      : bytes_(bytes), widths_(widths), what_(what) {}

  std::string_view take(uint64_t size) {
    if (size > left()) throw fault("its ", what_, " is cut short");
    at_ += size_t(size);
    return bytes_.substr(at_ - size_t(size), size_t(size));
  }
  void skip(uint64_t size) { take(size); }
  // Reads a number of up to 8 bytes.
  uint64_t number(size_t width) {
    uint64_t value = 0;
    std::string_view field = take(width);
    for (size_t i = width; i-- > 0;) value = value << 8 | uint8_t(field[i]);
    return value;
  }
  uint8_t u8() { return uint8_t(number(1)); }
  uint16_t u16() { return uint16_t(number(2)); }
  uint32_t u32() { return uint32_t(number(4)); }
  uint64_t length() { return number(widths_.length); }
  uint64_t address() {
    const uint64_t value = number(widths_.address);
    const bool undefined = value == kUndefined >> (64 - 8 * widths_.address);
    return undefined ? kUndefined : value;
  }
  void expect(std::string_view signature) {
    if (take(signature.size()) != signature) throw fault("its ", what_, " is damaged");
  }
  void expect_version(uint8_t version) {
    if (uint8_t found = u8(); found != version) {
      throw fault("its ", what_, " is of version ", found, ", which is not read");
    }
  }
  size_t left() const { return bytes_.size() - at_; }
  size_t at() const { return at_; }
  Widths widths() const { return widths_; }

 private:
  std::string_view bytes_;
  Widths widths_;
  const char* what_;
  size_t at_ = 0;
};

class Bytes {
 public:
  explicit Bytes(const std::filesystem::path& path);  // Fault: missing, not a file, unreadable

  uint64_t size() const { return size_; }
  Widths widths() const { return widths_; }
  // Sets the superblock's values: addresses count from `base`.
  void set_layout(uint64_t base, Widths widths);

  // Returns the file position of `size` bytes at `address`. Fault: outside the file.
  uint64_t position(uint64_t address, uint64_t size, const char* what) const;
  // Copies bytes from a position in the file.
  void read(uint64_t position, uint64_t size, void* out) const;

  // Returns the bytes of a structure at `address`. `front` holds its first bytes if they were read
  // before, to learn its size; they are not read again.
  std::string structure(uint64_t address, uint64_t size, const char* what, std::string front = {});
  // The same for a structure that begins with a signature and ends with a checksum. The result
  // omits the checksum.
  std::string sealed(uint64_t address, uint64_t size, std::string_view signature, const char* what,
                     std::string front = {});
  // Charges memory or time to the budget. Fault: too much for a file of this size.
  void charge(uint64_t bytes);

 private:
  Descriptor descriptor_;
  uint64_t size_ = 0;
  uint64_t base_ = 0;
  uint64_t left_ = 0;  // bytes left in the budget
  Widths widths_;
};

// HDF5's checksum of structures: Bob Jenkins' hash "lookup3" with initial value 0.
uint32_t lookup3(std::string_view bytes);

}  // namespace finetune::hdf5
