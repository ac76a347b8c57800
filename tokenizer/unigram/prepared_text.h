// The steps of ALBERT's and DeBERTa's text before the character map: pairs of quotes, white space,
// NFC, NFKD, accents, lower case. Each keeps the source bytes of every character, as Hugging Face
// tokenizers do.
#pragma once

#include <vector>

#include "tokenizer/unigram/charsmap_normalizer.h"
#include "tokenizer/unigram/unigram_tokenizer.h"

namespace finetune::unigram {

// Flags the characters that the step changes; none if it is not such a step.
void flag_prepared_chars(const UnigramStep& step, CharFlags& flags);

// Applies the step to `text`. `memory` is to work in.
void prepare(const UnigramStep& step, const CharFlags& flags, unicode::SourcedText& text,
             unicode::SourcedText& memory);

// normalize_clusters() of a text that has sources already.
bool normalize_prepared(const CharsMap& map, const CharFlags& flags, std::vector<Change>& changes,
                        unicode::SourcedText& text, unicode::SourcedText& memory);

}  // namespace finetune::unigram
