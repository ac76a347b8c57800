// ALBERT's text preparation: spaces, quotes, lower case, accents.
#include "tokenizer/sentencepiece/sentencepiece_text.h"

#include "core/text/utf8.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace finetune {
namespace {

struct Char {
  char32_t c;
  uint32_t begin, end;
};

bool python_space(char32_t c) {
  return unicode::has(c, unicode::kSpace) || (c >= 0x1C && c <= 0x1F);
}

void collapse_spaces(std::vector<Char>& chars) {
  size_t kept = 0;
  for (const Char& c : chars) {
    if (!python_space(c.c)) {
      chars[kept++] = c;
    } else if (kept > 0 && chars[kept - 1].c == ' ') {
      chars[kept - 1].end = c.end;
    } else if (kept > 0) {
      chars[kept++] = {' ', c.begin, c.end};
    }
  }
  if (kept > 0 && chars[kept - 1].c == ' ') --kept;
  chars.resize(kept);
}

void replace_pairs(std::vector<Char>& chars, char32_t quote) {
  size_t kept = 0;
  for (size_t i = 0; i < chars.size(); ++i) {
    if (chars[i].c == quote && i + 1 < chars.size() && chars[i + 1].c == quote) {
      chars[kept++] = {'"', chars[i].begin, chars[i + 1].end};
      ++i;
    } else {
      chars[kept++] = chars[i];
    }
  }
  chars.resize(kept);
}

// Python's str.lower(), except that a final sigma becomes a plain one.
void push_lower(std::vector<Char>& out, const Char& c) {
  out.push_back({c.c == 0x130 ? U'i' : unicode::lower(c.c), c.begin, c.end});
  if (c.c == 0x130) out.push_back({0x307, c.begin, c.end});
}

}  // namespace

void prepare(std::string_view text, uint32_t begin, uint32_t end,
             const SentencePieceOptions& options, PreparedText& out) {
  std::vector<Char> chars, next;
  for (uint32_t at = begin; at < end;) {
    utf8::Decoded d = utf8::decode(text.substr(0, end), at);
    Char c{d.c, at, at + d.length};
    // Hugging Face lower-cases twice: here, and after the decomposition.
    if (options.lowercase) {
      push_lower(chars, c);
    } else {
      chars.push_back(c);
    }
    at += d.length;
  }
  if (options.remove_space) collapse_spaces(chars);
  replace_pairs(chars, U'`');
  replace_pairs(chars, U'\'');
  if (!options.keep_accents) {
    for (const Char& c : chars) {
      unicode::decompose(c.c, true, [&](char32_t part) {
        if (unicode::combining_class(unicode::entry(part)) != 0) return;
        next.push_back({part, c.begin, c.end});
      });
    }
    chars.swap(next);
    next.clear();
  }
  if (options.lowercase) {
    for (const Char& c : chars) push_lower(next, c);
    chars.swap(next);
  }
  out.text.clear();
  out.begins.clear();
  out.ends.clear();
  for (const Char& c : chars) {
    utf8::append(c.c, out.text);
    out.begins.resize(out.text.size(), c.begin);
    out.ends.resize(out.text.size(), c.end);
  }
}

}  // namespace finetune
