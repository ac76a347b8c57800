// Chooses the pieces of a text to hide, and their replacements.
// A pure function of the seed, the epoch and the sample's number; batch, process and thread do not
// matter. Same semantics as Hugging Face's collators for masked language modelling: for whole words
// DataCollatorForWholeWordMask, else DataCollatorForLanguageModeling.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/numeric/philox.h"
#include "tasks/objective.h"

namespace finetune {

// A piece that the model must predict.
struct HiddenPiece {
  int32_t place = 0;        // in the sample
  int32_t replacement = 0;  // its new id: [MASK], a random one, or its own
};

class Masking {
 public:
  static constexpr uint32_t kEvaluation = 0xFFFFFFFFu;  // instead of an epoch

  // `kinds`: WordKind of each id; must outlive this.
  Masking(const MaskingOptions& options, std::span<const uint8_t> kinds);

  // Chooses the hidden pieces of a sample from its ids, special tokens included. Overwrites `out`
  // with them, sorted by place.
  //
  // A whole word is a piece and the pieces after it that continue it. The words are shuffled by
  // Philox(seed; masking; word, sample, epoch, 0). Each word that still fits is hidden, until a
  // budget of probability * ids.size() pieces, rounded, at least 1, is used up. If none
  // fits, the first one is hidden anyway: otherwise a text of one long word would teach nothing
  // (Hugging Face hides nothing then). Without whole words, each piece is hidden with the
  // probability, by word 0 of Philox(seed; masking; place, sample, epoch, 1).
  //
  // A hidden piece becomes [MASK] with a probability of 80 %, and a random id with one of 10 %, by
  // words 1 and 2 of Philox(seed; masking; place, sample, epoch, 1). Special tokens are never
  // hidden.
  void hide(std::span<const int32_t> ids, uint32_t sample, uint32_t epoch,
            std::vector<HiddenPiece>& out) const;

 private:
  void choose_words(std::span<const int32_t> ids, uint32_t sample, uint32_t epoch,
                    std::vector<HiddenPiece>& out) const;
  WordKind kind(int32_t id) const { return WordKind(kinds_[size_t(id)]); }

  MaskingOptions options_;
  std::span<const uint8_t> kinds_;
  PhiloxKey key_;
};

}  // namespace finetune
