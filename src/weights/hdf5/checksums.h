// The checksums of HDF5: of its structures, and of filtered data.
#pragma once

#include <cstdint>
#include <string_view>

namespace finetune::hdf5 {

// Bob Jenkins' hash "lookup3" from 0.
uint32_t lookup3(std::string_view bytes);

// Fletcher's checksum of 32 bits over big-endian words of 16 bits; an odd byte is the upper half of
// the last.
uint32_t fletcher32(std::string_view bytes);

}  // namespace finetune::hdf5
