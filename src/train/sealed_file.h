// A file with a checksum over all of its bytes. The first kSealBytes are the seal: text that states
// the size and the checksum of what follows. HDF5 skips it (its "user block"), so that the file
// stays readable for every HDF5 tool, and a damaged file never reaches the HDF5 library.
//
// Checksum: SHA-256 over the SHA-256 (hex) of consecutive blocks of 1 MiB, computed in parallel
// and read back in small pieces: no copy or mapping of the file.
#pragma once

#include <cstdint>
#include <filesystem>

namespace finetune {

constexpr uint64_t kSealBytes = 512;

// Writes the seal of a finished file whose first kSealBytes are unused. Error(model) if it cannot.
void seal_file(const std::filesystem::path& path);

// Error(model) naming the file and what is wrong: missing, no seal, cut, or a byte that differs.
void verify_seal(const std::filesystem::path& path);

}  // namespace finetune
