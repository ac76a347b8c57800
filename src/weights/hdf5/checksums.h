// HDF5's checksums of structures and of filtered data.
#pragma once

#include <cstdint>
#include <string_view>

namespace finetune::hdf5 {

// Bob Jenkins' hash "lookup3" with initial value 0.
uint32_t lookup3(std::string_view bytes);

// The 32-bit Fletcher checksum over big-endian 16-bit words; an odd last byte is the upper half of
// a word.
uint32_t fletcher32(std::string_view bytes);

}  // namespace finetune::hdf5
