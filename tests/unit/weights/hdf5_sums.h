// Finds the structures of an HDF5 file that have checksums, and repairs them after a change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "weights/hdf5/bytes.h"

namespace finetune::test {

inline uint32_t word_at(const std::string& bytes, size_t at) {
  uint32_t word;
  std::memcpy(&word, &bytes[at], sizeof word);
  return word;
}

// Bytes [begin, end) with a checksum at `checksum`, which counts as zeros if it is inside.
struct Sealed {
  size_t begin, end, checksum;

  uint32_t sum(const std::string& bytes) const {
    if (checksum >= end) return hdf5::lookup3(std::string_view(bytes).substr(begin, end - begin));
    std::string part = bytes.substr(begin, end - begin);
    std::fill_n(part.begin() + ptrdiff_t(checksum - begin), 4, '\0');
    return hdf5::lookup3(part);
  }
  bool lies_in(const std::string& bytes) const {
    return end <= bytes.size() && checksum + 4 <= bytes.size();
  }
  bool has(size_t at) const { return at >= begin && at < std::max(end, checksum + 4); }
  bool holds(const std::string& bytes) const { return sum(bytes) == word_at(bytes, checksum); }
  void mend(std::string& bytes) const {
    const uint32_t right = sum(bytes);
    std::memcpy(&bytes[checksum], &right, sizeof right);
  }
};

// The place of the checksum of a version 2 object header at `at`, from its own size fields. Behind
// the end if these are invalid.
inline size_t end_of_header(const std::string& bytes, size_t at) {
  constexpr uint8_t kTimes = 0x20, kPhases = 0x10;
  if (bytes.size() - at < 6) return bytes.size();
  const auto flags = uint8_t(bytes[at + 5]);
  const size_t before = at + 6 + (flags & kTimes ? 16 : 0) + (flags & kPhases ? 4 : 0);
  const size_t width = size_t{1} << (flags & 3);
  if (before + width > bytes.size()) return bytes.size();
  uint64_t content = 0;
  std::memcpy(&content, &bytes[before], width);
  return size_t(before + width + std::min<uint64_t>(content, bytes.size()));
}

// All structures with a checksum: signatures mark their beginnings, checksums confirm their ends.
// None is longer than `longest`.
inline std::vector<Sealed> find_sealed(const std::string& bytes, size_t longest = 4096) {
  std::vector<Sealed> all;
  auto keep = [&](Sealed candidate) {
    const bool fits = candidate.lies_in(bytes) && candidate.holds(bytes);
    if (fits) all.push_back(candidate);
    return fits;
  };
  for (const char* signature : {"OHDR", "OCHK", "BTHD", "BTIN", "BTLF", "FRHP", "FHIB", "FAHD",
                                "FADB", "\x89HDF", "FHDB"}) {
    for (size_t at = 0; (at = bytes.find(signature, at)) != std::string::npos; ++at) {
      if (std::string_view(signature) == "FHDB") {
        for (size_t offset_bytes : {4, 5}) {
          for (size_t size = 256; size <= longest; size *= 2) {
            if (keep({at, at + size, at + 13 + offset_bytes})) break;
          }
        }
        continue;
      }
      if (std::string_view(signature) == "OHDR") {
        const size_t end = end_of_header(bytes, at);
        keep({at, end, end});
        continue;
      }
      for (size_t end = at + 8; end + 4 <= std::min(bytes.size(), at + longest); ++end) {
        if (keep({at, end, end})) break;
      }
    }
  }
  return all;
}

// Repairs the checksums of `changed` for structures at the same place as in `before`.
inline void mend_sums(const std::string& before, std::string& changed) {
  constexpr size_t kLongest = 1024;  // bytes; looking for longer ones is slow
  for (const Sealed& structure : find_sealed(before, kLongest)) {
    if (structure.lies_in(changed) && !structure.holds(changed)) structure.mend(changed);
  }
}

}  // namespace finetune::test
