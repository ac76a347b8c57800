// Helpers for simdjson. It reports lack of memory by an error code; here that becomes bad_alloc,
// not a fault of the text.
#pragma once

#include <simdjson.h>

#include <new>
#include <string_view>

namespace finetune {

// A description of what is wrong with a JSON text.
inline const char* json_fault(simdjson::error_code error) {
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();
  return simdjson::error_message(error);
}

// A copy with the padding that simdjson needs behind the text.
inline simdjson::padded_string padded_copy(std::string_view text) {
  simdjson::padded_string copy(text);
  if (copy.data() == nullptr) throw std::bad_alloc();
  return copy;
}

}  // namespace finetune
