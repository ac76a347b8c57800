// A file with a checksum over all of its bytes. The first kSealBytes are the seal: text with the
// size and the checksum of the rest. For HDF5 the seal is a "user block", which it skips. So every
// HDF5 tool can read the file, and a damaged file never reaches the HDF5 library.
//
// Checksum: SHA-256 over the SHA-256 (hex) of consecutive blocks of 1 MiB. Blocks are read in small
// pieces and summed in parallel; the file is not copied or mapped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace finetune {

constexpr uint64_t kSealBytes = 512;

// A range of a file's bytes, and its CRC-32C.
struct FilePart {
  uint64_t begin, end;
  uint32_t crc32c = 0;
};
constexpr uint64_t kToTheEnd = ~uint64_t{0};  // as the end of a part

// Returns the seal of a finished file whose first kSealBytes are unused. It is not written yet, so
// that the caller can first check the content. Sets the CRC-32C of `parts` (in order, not
// overlapping) from the same bytes in memory as the seal's checksum.
std::string seal_of(const std::filesystem::path& path, std::span<FilePart> parts = {});

// The CRC-32C of each part, from reading the file again.
std::vector<uint32_t> crc32c_of(const std::filesystem::path& path, std::span<const FilePart> parts);

// Writes the seal, reads it back and closes the file. Error(model) if a call fails, or if the
// file's size is not the size in the seal.
void put_seal(const std::filesystem::path& path, const std::string& seal);

// Error(model) naming the file and what is wrong: missing, no seal, cut, or a byte that differs.
void verify_seal(const std::filesystem::path& path);

}  // namespace finetune
