// The attributes of an object: small named values.
#pragma once

#include <string>
#include <vector>

#include "weights/hdf5/bytes.h"
#include "weights/hdf5/object_header.h"
#include "weights/hdf5/types.h"

namespace finetune::hdf5 {

struct Attribute {
  std::string name;
  std::string message;  // the whole attribute message, unparsed
};

struct AttributeValue {
  Type type;
  std::vector<int64_t> shape;  // empty: one element
  std::string bytes;           // all elements, as stored
};

// Returns the attributes in order of name, values unparsed. Fault: damaged, or a repeated name.
std::vector<Attribute> read_attributes(Bytes& bytes, const std::vector<Message>& header);

// Fault: the type is shared, or the value is cut short.
AttributeValue value_of(const Attribute& attribute, Widths widths);

}  // namespace finetune::hdf5
