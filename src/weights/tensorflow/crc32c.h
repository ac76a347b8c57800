// CRC-32C (Castagnoli), as LevelDB tables and TensorFlow checkpoints have it.
// By the processor's instruction for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace finetune {

// Of bytes that follow others whose sum is `before`.
uint32_t crc32c(const uint8_t* data, size_t size, uint32_t before = 0);
// Of bytes whose sum is `first` and of `size` more whose sum is `second`.
uint32_t joined_crc32c(uint32_t first, uint32_t second, uint64_t size);
// The same as crc32c, by all threads.
uint32_t parallel_crc32c(const uint8_t* data, size_t size);
// LevelDB's mask: a checksum of data that hold checksums.
uint32_t masked_crc32c(const uint8_t* data, size_t size);

}  // namespace finetune
