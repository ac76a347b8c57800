// ngrams.bin: the linear model beside a classifier's weights, behind its sum.
#include "tasks/classification/ngram_mix/ngram_file.h"

#include "core/sha256.h"
#include "fuzz/target.h"
#include "tasks/classification/ngram_mix/ngram_mix.h"

namespace finetune::fuzz {
namespace {

constexpr size_t kSum = 64;

void check_ngram_file(std::string_view input) {
  StoredNgrams stored = read_ngram_file(input, "ngrams.bin");
  const std::string again = ngram_file_of(stored.model);
  require(again == input || input.size() > kMostNgramFileBytes, "a file is written in two ways");
  NgramScorer scorer(std::move(stored.model));
  const std::string text(input.substr(0, 200));
  const std::vector<std::string> texts{text, "red apple pie", text};
  for (float margin : scorer.margins_of(texts)) require(margin == margin, "a margin is no number");
}

void mend_sum(const std::string&, std::string& changed) {
  if (changed.size() < kSum) return;
  changed.resize(changed.size() - kSum);
  changed += sha256_of(changed);
}

const Registration kNgramFileTarget({.name = "ngram_file",
                                     .run = check_ngram_file,
                                     .mend = mend_sum});

}  // namespace
}  // namespace finetune::fuzz
