// The links of a group, from any of HDF5's three storages: old symbol tables, messages in the
// header, or dense storage.
#pragma once

#include <string>
#include <vector>

#include "weights/hdf5/bytes.h"
#include "weights/hdf5/object_header.h"

namespace finetune::hdf5 {

struct Link {
  std::string name;      // valid UTF-8 without control bytes and '/'
  uint64_t address = 0;  // where the object's header is
};

bool is_group(const std::vector<Message>& header);

// Returns the links in order of name. Fault: damaged, a repeated name, or a link that is not hard:
// its target may be outside the file.
std::vector<Link> read_links(Bytes& bytes, const std::vector<Message>& header);

}  // namespace finetune::hdf5
