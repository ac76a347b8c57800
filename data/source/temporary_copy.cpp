// Copies a stream to an unnamed file that is opened again through its descriptor.
#include "data/source/temporary_copy.h"

#include "core/files/files.h"
#include "core/text/text.h"
#include "data/input_file.h"

namespace finetune {

TemporaryCopy::TemporaryCopy(const fs::path& source)
    : file_(concat("a copy of ", input_name(source))) {}

void TemporaryCopy::write(std::string_view bytes) {
  file_.write(bytes);
}

fs::path TemporaryCopy::path() const {
  return concat("/proc/self/fd/", file_.descriptor());
}

}  // namespace finetune
