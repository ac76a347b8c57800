// simdjson says by a code that it found no memory: here that is what it is everywhere, bad_alloc,
// and no fault of the text.
#pragma once

#include <simdjson.h>

#include <new>
#include <string_view>

namespace finetune {

// What is wrong with a JSON text, for a message.
inline const char* json_fault(simdjson::error_code error) {
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();
  return simdjson::error_message(error);
}

// A copy that simdjson can read past the end of.
inline simdjson::padded_string padded_copy(std::string_view text) {
  simdjson::padded_string copy(text);
  if (copy.data() == nullptr) throw std::bad_alloc();
  return copy;
}

}  // namespace finetune
