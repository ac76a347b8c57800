// GPT-2's characters for bytes: every byte of a word is one printable character in the vocabulary.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace finetune::bpe {

// byte -> character. 33-126, 161-172 and 174-255 stay; the others take U+0100 onwards in order.
extern const std::array<char32_t, 256> kByteChars;

// Returns the bytes that `piece` stands for, or nothing if one of its characters is not a byte's.
std::optional<std::string> bytes_of(std::string_view piece);

}  // namespace finetune::bpe
