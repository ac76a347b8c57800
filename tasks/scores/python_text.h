// Text functions with Python's semantics: str.lower, str.split, str.lstrip, \w.
// The official SQuAD metric and Hugging Face's preparation of questions are defined by them. UTF-8
// throughout; bytes that are not UTF-8 count as U+FFFD each.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

std::u32string decode_utf8(std::string_view text);

bool is_python_space(char32_t c);  // str.isspace: U+001C..U+001F and U+0085 too
bool is_python_word(char32_t c);   // \w: letters, what has a numeric value, '_'; not marks
std::u32string python_lower(std::u32string_view text);  // str.lower, final sigma included
std::string_view python_lstrip(std::string_view text);  // str.lstrip()

}  // namespace finetune
