// A copy of an input in a file without a name, in $TMPDIR, for what cannot be read as it is.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/files/nameless_file.h"

namespace finetune {

// The file vanishes with this object. Error(model) if it cannot be written.
class TemporaryCopy {
 public:
  // `source`: of what it is a copy, for messages.
  explicit TemporaryCopy(const std::filesystem::path& source);

  void write(std::string_view bytes);
  std::filesystem::path path() const;

 private:
  NamelessFile file_;
};

}  // namespace finetune
