// A file with a checksum over all of its bytes. The first kSealBytes are the seal: text that states
// the size and the checksum of what follows. HDF5 skips it (its "user block"), so that the file
// stays readable for every HDF5 tool, and a damaged file never reaches the HDF5 library.
//
// Checksum: SHA-256 over the SHA-256 (hex) of consecutive blocks of 1 MiB, computed in parallel
// and read back in small pieces: no copy or mapping of the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace finetune {

constexpr uint64_t kSealBytes = 512;

// Bytes of a file, and their CRC-32C.
struct FilePart {
  uint64_t begin, end;
  uint32_t crc32c = 0;
};
constexpr uint64_t kToTheEnd = ~uint64_t{0};  // as the end of a part

// The seal for what a finished file holds after its first kSealBytes, which are unused so far. It
// is not in the file yet, so that its content can be looked at before it counts as whole. The sums
// of `parts`, which are in order and apart, are of the same bytes in memory that the seal's are of.
std::string seal_of(const std::filesystem::path& path, std::span<FilePart> parts = {});

// The sums of parts as they are read now.
std::vector<uint32_t> crc32c_of(const std::filesystem::path& path, std::span<const FilePart> parts);

// Writes it, reads it back and closes the file with a look at the status. Error(model) if any of it
// fails, or the file is no longer as long as the seal says.
void put_seal(const std::filesystem::path& path, const std::string& seal);

// Error(model) naming the file and what is wrong: missing, no seal, cut, or a byte that differs.
void verify_seal(const std::filesystem::path& path);

}  // namespace finetune
