// LevelDB tables (doc/table_format.md of LevelDB): sorted keys and values in checksummed blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace finetune {

struct TableEntry {
  std::string key;
  std::string_view value;  // points into the table's bytes
};

// Returns all entries in order. `file` is used in messages. Error(model) if the table is truncated
// or damaged, or a block is compressed.
std::vector<TableEntry> read_table(const std::string& file, std::string_view bytes);

}  // namespace finetune
