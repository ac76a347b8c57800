// An object's header: the messages that make it a group or a dataset.
#pragma once

#include <string>
#include <vector>

#include "weights/hdf5/bytes.h"

namespace finetune::hdf5 {

enum class MessageType : uint8_t {
  nothing = 0x00,
  dataspace = 0x01,
  link_info = 0x02,
  datatype = 0x03,
  old_fill_value = 0x04,
  fill_value = 0x05,
  link = 0x06,
  external_files = 0x07,
  layout = 0x08,
  group_info = 0x0A,
  filters = 0x0B,
  attribute = 0x0C,
  comment = 0x0D,
  old_time = 0x0E,
  shared_table = 0x0F,
  continuation = 0x10,
  symbol_table = 0x11,
  time = 0x12,
  tree_sizes = 0x13,
  driver = 0x14,
  attribute_info = 0x15,
  reference_count = 0x16,
  file_space = 0x17,
  cache_image = 0x18,
};

struct Message {
  MessageType type;
  bool shared = false;  // the body only refers to the message
  std::string body;
};

// Returns all messages in order, those of continuation blocks at the end, without null and
// continuation messages. Fault: damaged, or an unknown message type.
std::vector<Message> read_object_header(Bytes& bytes, uint64_t address);

// Returns the only message of that type, or null if there is none. Fault: several, or a shared one.
const Message* find_message(const std::vector<Message>& messages, MessageType type);

}  // namespace finetune::hdf5
