// The n-grams of a text with names for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace finetune {

// Hash and name of each n-gram that NgramCutter makes: "hardware store" for words; "'tir'" for
// characters, with a blank where a word begins or ends.
std::vector<std::pair<uint64_t, std::string>> named_ngrams(std::string_view text);

}  // namespace finetune
