// The normalization steps of ALBERT and DeBERTa before the character map: pairs of quotes, white
// space, NFC, NFKD, accents, lower case. Each keeps the source bytes of every character, as Hugging
// Face tokenizers do.
#pragma once

#include <vector>

#include "tokenizer/unigram/charsmap_normalizer.h"
#include "tokenizer/unigram/unigram_tokenizer.h"

namespace finetune::unigram {

// Flags the characters that the step changes. Does nothing for a step of another kind.
void flag_prepared_chars(const UnigramStep& step, CharFlags& flags);

// Applies the step to `text`. `memory` is scratch memory.
void prepare(const UnigramStep& step, const CharFlags& flags, unicode::SourcedText& text,
             unicode::SourcedText& memory);

// normalize_clusters() for a text that already has sources.
bool normalize_prepared(const CharsMap& map, const CharFlags& flags, std::vector<Change>& changes,
                        unicode::SourcedText& text, unicode::SourcedText& memory);

}  // namespace finetune::unigram
