// Replaces lines of model cards.
#include "train/record/card_lines.h"

#include <algorithm>

#include "core/text/text.h"
#include "engine/export_model.h"

namespace finetune {
namespace {

constexpr std::string_view kOldWeightsSumLine = "\nsha256 of the weights: ";
constexpr std::string_view kPromiseLine = "\nPromise: ";

bool is_own(const std::string& card) {
  return card.find(kCardMarker) != card.npos;
}

}  // namespace

std::string with_weights_sha256(std::string card, std::string_view sha256) {
  if (!is_own(card)) return card;
  for (const std::string_view line : {kWeightsSumLine, kOldWeightsSumLine}) {
    const size_t found = card.rfind(line);
    if (found == card.npos) continue;
    const size_t begin = found + line.size();
    const size_t end = std::min(card.find('\n', begin), card.size());
    card.replace(begin, end - begin, sha256).replace(found, line.size(), kWeightsSumLine);
    break;
  }
  return card;
}

std::string with_promise(std::string card, std::string_view promise) {
  const size_t end = card.find(kDataHeading);
  if (!is_own(card) || end == card.npos) return card;
  const size_t old = std::min(card.find(kPromiseLine), end);
  std::string line;
  if (!promise.empty())
    line = concat(kPromiseLine, promise, "; `finetune predict --automatic` uses it.\n");
  return card.replace(old, end - old, line);
}

}  // namespace finetune
