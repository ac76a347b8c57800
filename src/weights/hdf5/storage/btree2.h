// Version 2 B-trees: the records of an index, in order.
#pragma once

#include <functional>
#include <string_view>

#include "weights/hdf5/bytes.h"

namespace finetune::hdf5 {

// Calls visit(record) for every record of the tree at `address`, which must have this type.
void each_record(Bytes& bytes, uint64_t address, uint8_t type,
                 const std::function<void(std::string_view)>& visit);

}  // namespace finetune::hdf5
