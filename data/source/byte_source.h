// The bytes of an input as text in UTF-8: unpacked and converted while they are read.
//
//   packed      gzip and Zstandard, by their first bytes; all frames and members, checksums
//   verified encodings   UTF-8; UTF-16 by its byte order mark or its zero bytes; any other that
//   iconv(3)
//               knows, where it is named
// Workbooks, Parquet files, archives and other forms that hold no text are refused with the way to
// text from them. Memory is a few blocks, whatever the file unpacks to.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "data/input_file.h"

namespace finetune {

// "auto": UTF-8 or UTF-16, as the bytes say; else a name that iconv(3) knows, in any case.
inline constexpr std::string_view kAutoEncoding = "auto";

// Error(usage) for an encoding that is not known.
void require_encoding(const std::string& encoding);

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Up to `size` (> 0) bytes to `to`, as soon as there are any; 0: the end. Error(data) names the
  // input and what is wrong with it.
  virtual size_t read(char* to, size_t size) = 0;
  // Returns the share of the file's bytes that have been read, or a negative number for an input
  // of unknown size.
  virtual double share() const = 0;
};

// "-" is the standard input. Error(data) for what cannot be opened or holds no text.
std::unique_ptr<ByteSource> open_text(const std::filesystem::path& path,
                                      const std::string& encoding = std::string(kAutoEncoding));

// `file` whose content is its text: itself where nothing has to be unpacked or converted, else a
// nameless copy in $TMPDIR. `file` is no pipe.
InputFile as_text(InputFile file, const std::string& encoding = std::string(kAutoEncoding));

// Up to `size` first bytes of its text.
std::string beginning_of_text(const InputFile& file, size_t size);

// The name without the suffix of its packing: "rows.csv" of "rows.csv.gz".
std::filesystem::path unpacked_name(const std::filesystem::path& name);

}  // namespace finetune
