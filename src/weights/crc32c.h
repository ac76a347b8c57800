// CRC-32C (Castagnoli), as LevelDB tables, TensorFlow checkpoints and event files use it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace finetune {

uint32_t crc32c(const uint8_t* data, size_t size);
// LevelDB's mask: a checksum of data that hold checksums.
uint32_t masked_crc32c(const uint8_t* data, size_t size);

}  // namespace finetune
