// Helpers for reading JSON with simdjson.
#pragma once

#include <simdjson.h>

#include <new>
#include <string>
#include <string_view>

namespace finetune {

// Adds an exponent to each integer of more than 19 digits or below those of 64 bits, so that a
// parser reads it as a double: Hugging Face writes "no limit" as int(1e30). Invalid JSON stays
// invalid.
std::string with_long_integers_as_doubles(std::string_view json);

// A description of what is wrong with a JSON text. simdjson reports lack of memory by an error code
// too; here that becomes bad_alloc, not a fault of the text.
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
