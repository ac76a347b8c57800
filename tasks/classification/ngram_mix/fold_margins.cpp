// Trains a linear model for each fold and scores the fold's texts.
#include "tasks/classification/ngram_mix/fold_margins.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "core/error.h"
#include "core/failure.h"
#include "core/files/mapped_file.h"
#include "core/text/text.h"
#include "tasks/classification/ngram_mix/ngram_file.h"
#include "tasks/classification/ngram_mix/ngram_mix.h"
#include "tasks/classification/ngrams/ngram_process.h"

namespace finetune {
namespace {

NgramModel trained_model(const TextRows& train, ProblemType problem, int64_t outputs) {
  const Descriptor file(::memfd_create("ngrams", MFD_CLOEXEC));
  if (file.number() < 0) throw device_error("its file: ", start_failure(errno));
  const TextRows none, predictions;
  predict_with_ngrams({problem, outputs, train, none, predictions, &file});
  const MappedFile mapped(concat("/proc/self/fd/", file.number()), ExitCode::device);
  return read_ngram_file(mapped.text(), "n-grams").model;
}

}  // namespace

std::vector<float> fold_margins(const TextRows& rows, std::span<const uint8_t> folds,
                                ProblemType problem, int64_t outputs) {
  std::vector<TextRow> all;
  TextRowReader reader(rows.descriptor());
  for (TextRow row; reader.next(row);) all.push_back(row);
  FINETUNE_CHECK(all.size() == folds.size());
  std::vector<float> out(all.size() * size_t(outputs));
  for (const uint8_t fold : std::set<uint8_t>(folds.begin(), folds.end())) {
    TextRows others;
    std::vector<std::string> texts;
    for (size_t row = 0; row < all.size(); ++row) {
      if (folds[row] == fold) {
        texts.push_back(all[row].text);
      } else {
        others.add(all[row].text, all[row].labels);
      }
    }
    others.flush();
    NgramScorer scorer(trained_model(others, problem, outputs));
    const std::vector<float> margins = scorer.margins_of(texts);
    auto next = margins.begin();
    for (size_t row = 0; row < all.size(); ++row) {
      if (folds[row] != fold) continue;
      std::copy_n(next, outputs, out.begin() + int64_t(row) * outputs);
      next += outputs;
    }
  }
  return out;
}

}  // namespace finetune
