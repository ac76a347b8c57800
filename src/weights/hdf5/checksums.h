// HDF5's checksum of structures.
#pragma once

#include <cstdint>
#include <string_view>

namespace finetune::hdf5 {

// Bob Jenkins' hash "lookup3" with initial value 0.
uint32_t lookup3(std::string_view bytes);

}  // namespace finetune::hdf5
