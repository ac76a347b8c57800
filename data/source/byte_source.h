// Reads an input as UTF-8 text, unpacking and converting on the fly.
//
//   packed      gzip and Zstandard, detected by their first bytes; all members and frames
//   encodings   UTF-8; UTF-16, detected by its byte order mark or its zero bytes; others that
//               iconv(3) knows, if the user names them
//
// Workbooks, Parquet files, archives and other binary forms are refused with a command that
// converts them. Memory is a few blocks, whatever the size of the file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "data/input_file.h"

namespace finetune {

// "auto" detects UTF-8 and UTF-16; other values are names that iconv(3) knows, in any case.
inline constexpr std::string_view kAutoEncoding = "auto";

// Error(usage) if the encoding is unknown.
void require_encoding(const std::string& encoding);

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads up to `size` (> 0) bytes into `to` as soon as there are any; returns 0 at the end.
  // Error(data) names the input and the problem.
  virtual size_t read(char* to, size_t size) = 0;
  // Returns the share of the file's bytes that have been read, or a negative number for an input
  // of unknown size.
  virtual double share() const = 0;
};

// "-" is standard input. Error(data) if the input cannot be opened or holds no text.
std::unique_ptr<ByteSource> open_text(const std::filesystem::path& path,
                                      const std::string& encoding = std::string(kAutoEncoding));

// Returns `file` if its bytes are UTF-8 text already, else an unpacked and converted copy, an
// unnamed file in $TMPDIR. `file` must not be a pipe.
InputFile as_text(InputFile file, const std::string& encoding = std::string(kAutoEncoding));

// Returns up to the first `size` bytes of the text.
std::string beginning_of_text(const InputFile& file, size_t size);

// Removes the suffix of compression: "rows.csv.gz" gives "rows.csv".
std::filesystem::path unpacked_name(const std::filesystem::path& name);

}  // namespace finetune
