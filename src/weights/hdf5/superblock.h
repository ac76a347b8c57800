// The superblock, which begins an HDF5 file behind a user block of 0, 512, 1024, 2048, ... bytes.
#pragma once

#include "weights/hdf5/bytes.h"

namespace finetune::hdf5 {

// Sets the base and width of addresses in `bytes`; returns the address of the root group's object
// header. Fault: not an HDF5 file, truncated, or one of several files.
uint64_t read_superblock(Bytes& bytes);

}  // namespace finetune::hdf5
