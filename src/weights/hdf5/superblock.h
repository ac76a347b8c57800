// The superblock, where an HDF5 file begins: behind a user block of 0, 512, 1024, 2048, ... bytes.
#pragma once

#include "weights/hdf5/bytes.h"

namespace finetune::hdf5 {

// Tells `bytes` where addresses begin and how wide they are, and gives the address of the root
// group's object header. Fault: no HDF5 file, a truncated one, one of several files.
uint64_t read_superblock(Bytes& bytes);

}  // namespace finetune::hdf5
