// A copy of an input in a file without a name, in $TMPDIR, for what cannot be read as it is.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/files/descriptor.h"

namespace finetune {

// The file vanishes with this object. Error(model) if it cannot be written.
class TemporaryCopy {
 public:
  // `source`: of what it is a copy, for messages.
  explicit TemporaryCopy(const std::filesystem::path& source);

  void write(std::string_view bytes);
  std::filesystem::path path() const;

 private:
  Error write_failure() const;

  std::string source_name_, file_name_;
  Descriptor file_;
};

}  // namespace finetune
