// The directory of a zip archive whose entries are stored uncompressed (PKWARE APPNOTE 6.3.10).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/files/files.h"

namespace finetune {

struct ZipEntry {
  std::string_view name;  // in the mapped file
  std::string_view data;  // in the mapped file
};

// Reads the central directory, zip64 included. Error(model) if the archive is truncated, an entry
// is compressed or encrypted or outside the file, or two have the same name.
std::vector<ZipEntry> read_zip_directory(const MappedFile& file);

}  // namespace finetune
