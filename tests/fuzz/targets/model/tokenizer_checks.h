// Properties of a loaded tokenizer, whatever its files contain.
#pragma once

#include <memory>
#include <string_view>

#include "fuzz/target.h"
#include "tokenizer/tokenizer.h"

namespace finetune::fuzz {

inline void check_encoding(const Tokenizer& tokenizer, std::string_view text) {
  TokenBuffer tokens;
  tokenizer.encode(text, tokens);
  require(tokens.begins.size() == tokens.size() && tokens.ends.size() == tokens.size(),
          "offsets are not one a token");
  for (size_t i = 0; i < tokens.size(); ++i) {
    require(tokens.ids[i] >= 0 && tokens.ids[i] < tokenizer.vocabulary_size(), "id ", tokens.ids[i],
            " of ", tokenizer.vocabulary_size());
    require(tokens.begins[i] <= tokens.ends[i] && tokens.ends[i] <= text.size(), "offsets ",
            tokens.begins[i], " to ", tokens.ends[i], " in a text of ", text.size());
  }
}

inline void check_tokenizer(const Tokenizer& tokenizer, std::string_view text) {
  const int32_t size = tokenizer.vocabulary_size();
  const SpecialTokens& special = tokenizer.special();
  for (int32_t id : {special.cls, special.sep}) {
    require(id >= 0 && id < size, "special token ", id, " of ", size);
  }
  require(special.unk >= -1 && special.unk < size, "unknown token ", special.unk, " of ", size);
  require(special.pad >= -1 && special.pad < size, "padding ", special.pad, " of ", size);
  for (int32_t id : {-1, 0, size - 1, size}) tokenizer.token(id);
  require(!tokenizer.token(special.cls).empty(), "[CLS] has no text");
  check_encoding(tokenizer, text);
  check_encoding(tokenizer,
                 "COFFEE 12,50 [SEP] r\xC3\xA9sum\xC3\xA9 \xE4\xB8\xAD\xE6\x96\x87 a\xFF");
}

}  // namespace finetune::fuzz
