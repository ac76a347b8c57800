// The links of a group, however the file keeps them: old symbol tables, messages in the header, or
// dense storage.
#pragma once

#include <string>
#include <vector>

#include "weights/hdf5/bytes.h"
#include "weights/hdf5/object_header.h"

namespace finetune::hdf5 {

struct Link {
  std::string name;      // valid UTF-8 without control bytes and '/'
  uint64_t address = 0;  // of the object's header
};

bool is_group(const std::vector<Message>& header);

// In order of name. Fault: damaged, two of one name, or a link that is not hard: what it leads to
// may lie outside of the file.
std::vector<Link> read_links(Bytes& bytes, const std::vector<Message>& header);

}  // namespace finetune::hdf5
