// An unnamed file in $TMPDIR: it vanishes with its last descriptor, however the process ends.
#pragma once

#include <string>
#include <string_view>

#include "core/files/descriptor.h"

namespace finetune {

// $TMPDIR, or /tmp if that is empty or not set.
std::string temporary_directory();

class NamelessFile {
 public:
  // `what` names the contents in errors. Error(model) if the file cannot be created, and later if
  // it cannot be written.
  explicit NamelessFile(std::string what);
  NamelessFile(std::string what, int descriptor);  // takes over another process's file

  void write(std::string_view bytes);
  int descriptor() const { return file_.number(); }

 private:
  [[noreturn]] void fail() const;  // reports errno

  std::string what_;
  Descriptor file_;
};

}  // namespace finetune
