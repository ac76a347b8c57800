// Text functions with Python's semantics: str.lower, str.split, str.lstrip, \w.
// The official SQuAD metric and Hugging Face's preparation of questions depend on them. Texts are
// UTF-8; each byte that is not UTF-8 counts as U+FFFD.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

std::u32string decode_utf8(std::string_view text);

bool is_python_space(char32_t c);  // str.isspace: also U+001C..U+001F and U+0085
bool is_python_word(char32_t c);   // \w: letters, characters with a numeric value, '_'; no marks
std::u32string python_lower(std::u32string_view text);  // str.lower, with final sigma
std::string_view python_lstrip(std::string_view text);  // str.lstrip()

}  // namespace finetune
