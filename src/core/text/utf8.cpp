// Checks UTF-8 with simdjson, whose header takes long to compile.
#include "core/text/utf8.h"

#include <simdjson.h>

namespace finetune::utf8 {

bool is_valid(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

}  // namespace finetune::utf8
