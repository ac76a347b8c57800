// CRC-32C (Castagnoli), used by LevelDB tables and TensorFlow checkpoints. It uses the processor's
// instruction for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace finetune {

// Continues the checksum `before` of the preceding bytes.
uint32_t crc32c(const uint8_t* data, size_t size, uint32_t before = 0);
// Returns the checksum of two adjacent byte ranges, given the checksum of each. The second range
// has `size` bytes.
uint32_t joined_crc32c(uint32_t first, uint32_t second, uint64_t size);
// The same as crc32c(), on all threads.
uint32_t parallel_crc32c(const uint8_t* data, size_t size);
// LevelDB's masked checksum, for data that contain checksums.
uint32_t masked_crc32c(const uint8_t* data, size_t size);

}  // namespace finetune
