// A copy of an input in an unnamed file in $TMPDIR, for inputs that can be read only once.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/files/temporary_name.h"

namespace finetune {

// The file vanishes with this object. Error(model) if it cannot be written.
class TemporaryCopy {
 public:
  // `source` names the copied input in messages.
  explicit TemporaryCopy(const std::filesystem::path& source);

  void write(std::string_view bytes);
  std::filesystem::path path() const;

 private:
  NamelessFile file_;
};

}  // namespace finetune
