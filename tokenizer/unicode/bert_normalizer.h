// BertNormalizer of Hugging Face tokenizers 0.22.2, for text that is not plain ASCII. Each
// normalized character records the source bytes that it stands for.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace finetune {

struct NormalizerOptions {
  bool clean_text = true;            // drop control characters, turn white space into ' '
  bool handle_chinese_chars = true;  // spaces around ideographs
  bool strip_accents = true;         // NFD without nonspacing marks
  bool lowercase = true;
  friend bool operator==(const NormalizerOptions&, const NormalizerOptions&) = default;
};

struct NormalizedChar {
  char32_t c;
  uint32_t flags;       // unicode::Flag of c
  uint32_t begin, end;  // bytes of the original text
};

class BertNormalizer {
 public:
  explicit BertNormalizer(const NormalizerOptions& options) : options_(options) {}
  const NormalizerOptions& options() const { return options_; }

  // Buffers reused between calls.
  struct Scratch {
    std::vector<NormalizedChar> chars;  // the result

   private:
    friend class BertNormalizer;
    struct Part {
      char32_t c;
      uint32_t entry;
      bool first;  // first part of its source character's decomposition
    };
    struct Source {
      uint32_t begin, end;
    };
    std::vector<Part> run;        // parts since the last character of combining class 0
    std::vector<Source> sources;  // sources of the run's first parts, in order
    Source last{0, 0};            // source of the last emitted character
  };

  // Normalizes bytes [begin, end) of `text` into scratch.chars. The range must begin and end at an
  // ASCII space, ASCII punctuation or an end of the text, which normalization never crosses.
  void normalize(std::string_view text, uint32_t begin, uint32_t end, Scratch& scratch) const;

 private:
  void emit(char32_t c, uint32_t entry, uint32_t begin, uint32_t end, Scratch& scratch) const;
  void decompose(char32_t c, uint32_t entry, uint32_t begin, uint32_t end, Scratch& scratch) const;
  void flush(Scratch& scratch) const;

  NormalizerOptions options_;
};

}  // namespace finetune
