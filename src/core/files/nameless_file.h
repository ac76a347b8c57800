// A file in $TMPDIR that has no name: it vanishes with its last descriptor, whatever ends us.
#pragma once

#include <string>
#include <string_view>

#include "core/files/descriptor.h"

namespace finetune {

// $TMPDIR, or /tmp if it is empty or not set.
std::string temporary_directory();

class NamelessFile {
 public:
  // `what` it holds, for errors. Error(model) if there can be none, then and later where it cannot
  // be written.
  explicit NamelessFile(std::string what);
  NamelessFile(std::string what, int descriptor);  // another process's, which this one now owns

  void write(std::string_view bytes);
  int descriptor() const { return file_.number(); }

 private:
  [[noreturn]] void fail() const;  // by errno

  std::string what_;
  Descriptor file_;
};

}  // namespace finetune
