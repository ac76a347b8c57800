// Shared by the tokenizer's tests.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/files/files.h"
#include "error_line.h"
#include "shared.h"
#include "temporary_directory.h"
#include "tokenizer/encoding.h"
#include "tokenizer/tokenizer.h"

namespace finetune::test {

using Offsets = std::vector<std::pair<uint32_t, uint32_t>>;

struct Encoded {
  std::vector<int32_t> ids;
  Offsets offsets;  // code points
  friend bool operator==(const Encoded&, const Encoded&) = default;
};

inline Encoded encode(const Tokenizer& tokenizer, std::string_view text) {
  TokenBuffer buffer;
  tokenizer.encode(text, buffer);
  CodePointIndex index(text);
  Encoded out{buffer.ids, {}};
  for (size_t i = 0; i < buffer.size(); ++i) {
    out.offsets.push_back({index(buffer.begins[i]), index(buffer.ends[i])});
  }
  return out;
}

// The error line that `action` throws, or "". It must be a model error.
template <typename Action>
std::string model_error_of(Action&& action) {
  return error_line(ExitCode::model, action);
}

}  // namespace finetune::test
