// Scores texts by n-grams in parallel, and opens the file of a model directory.
#include "tasks/classification/ngram_mix/ngram_mix.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/counted.h"
#include "core/threads/parallel.h"
#include "tasks/classification/ngram_mix/ngram_file.h"

namespace finetune {
namespace {

constexpr int64_t kTextsPerPiece = 64;

// For each text the index of the first equal text.
std::vector<size_t> first_equals(std::span<const std::string> texts) {
  std::unordered_map<std::string_view, size_t> known;
  std::vector<size_t> out;
  for (size_t i = 0; i < texts.size(); ++i) out.push_back(known.emplace(texts[i], i).first->second);
  return out;
}

Error not_of_one_run(const fs::path& file, std::string_view what) {
  return model_error(file.string(), ": ", what,
                     "; copy a model directory as a whole; --no-ngram-mix of predict and evaluate "
                     "goes without");
}

}  // namespace

std::unique_ptr<Vectorizer> NgramScorer::borrow() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Vectorizer>(model_.index());
  std::unique_ptr<Vectorizer> vectorizer = std::move(idle_.back());
  idle_.pop_back();
  return vectorizer;
}

void NgramScorer::give_back(std::unique_ptr<Vectorizer> vectorizer) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(vectorizer));
}

std::vector<float> NgramScorer::margins_of(std::span<const std::string> texts) {
  const auto outputs = size_t(model_.outputs());
  const std::vector<size_t> firsts = first_equals(texts);
  std::vector<float> margins(texts.size() * outputs);
  parallel_ranges(int64_t(texts.size()), kTextsPerPiece, [&](int64_t begin, int64_t end) {
    std::unique_ptr<Vectorizer> vectorizer = borrow();
    std::vector<double> scores(outputs);
    for (auto i = size_t(begin); i < size_t(end); ++i) {
      if (firsts[i] != i) continue;
      model_.weights().score((*vectorizer)(texts[i]), scores);
      std::transform(scores.begin(), scores.end(), margins.begin() + int64_t(i * outputs),
                     [](double score) { return float(score); });
    }
    give_back(std::move(vectorizer));
  });
  for (size_t i = 0; i < texts.size(); ++i) {
    if (firsts[i] == i) continue;
    std::copy_n(margins.begin() + int64_t(firsts[i] * outputs), outputs,
                margins.begin() + int64_t(i * outputs));
  }
  return margins;
}

void mix_logits(const MixWeights& weights, std::span<const float> margins,
                std::span<float> logits) {
  FINETUNE_CHECK(margins.size() == logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = float(weights.model * double(logits[i]) + weights.ngrams * double(margins[i]));
  }
}

void read_ngrams_of(const fs::path& directory, const std::string& sha256, const UseNgrams& use) {
  const fs::path path = directory / kNgramFile;
  if (!path_exists(path, ExitCode::model)) {
    throw not_of_one_run(path, "is missing, and config.json beside it has finetune.ngram_mix");
  }
  const MappedFile file(path, ExitCode::model);
  file.read_intact([&] {
    StoredNgrams stored = read_ngram_file(file.text(), path.string());
    if (stored.sha256 != sha256) {
      throw not_of_one_run(path, "is that of another model: config.json has another sha256");
    }
    use(file.text(), std::move(stored.model));
  });
}

std::vector<std::string> NgramMix::unread_lines() const {
  return unread_.describe(columns, scorer.model().index().columns().numbers.size());
}

namespace {

void require_columns_of(const NgramMix& mix, const TaskOptions& options) {
  const ColumnCounts counts = mix.scorer.model().index().columns().counts();
  if (counts == ColumnCounts{options.number_columns.size(), options.category_columns.size()})
    return;
  throw usage_error("the model reads ", counted(counts.numbers, "column"), " of numbers and ",
                    counts.categories, " of categories; --number-columns names ",
                    options.number_columns.size(), ", --category-columns ",
                    options.category_columns.size());
}

}  // namespace

std::unique_ptr<NgramMix> open_ngram_mix(const TaskOptions& options, int64_t outputs) {
  if (!options.uses_mix || options.model_directory.empty()) return nullptr;
  const fs::path path = options.model_directory / kNgramFile;
  if (!options.mix) {
    if (!path_exists(path, ExitCode::model)) return nullptr;
    throw not_of_one_run(path, "is there, but config.json beside it has no finetune.ngram_mix");
  }
  std::unique_ptr<NgramMix> mix;
  read_ngrams_of(
      options.model_directory, options.mix->sha256, [&](std::string_view, NgramModel ngrams) {
        if (ngrams.outputs() != outputs) {
          throw not_of_one_run(
              path, concat("has ", ngrams.outputs(), " outputs, the model ", outputs, " labels"));
        }
        mix = std::make_unique<NgramMix>(options.mix->weights, std::move(ngrams));
        require_columns_of(*mix, options);
        mix->columns = options.side_columns();
      });
  return mix;
}

}  // namespace finetune
