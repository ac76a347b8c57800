// Draws the synthetic task's samples: Zipf token ids, random labels or spans.
#include "bench/synthetic_task.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/numeric/philox.h"
#include "tasks/evaluator.h"
#include "tasks/objective.h"
#include "tasks/registry.h"

namespace finetune {
namespace {

constexpr int64_t kClasses = 24;
constexpr PhiloxKey kTokenKey = {0x73796E74, 0x68657469};

class SyntheticTask : public Task {
 public:
  SyntheticTask(TaskKind kind, const LengthDistribution& lengths, int64_t count,
                int64_t vocabulary_size)
      : kind_(kind),
        of_tokens_(traits_of(kind).head == HeadKind::token),
        words_(kind == TaskKind::mlm ? vocabulary_size : 0),
        longest_(lengths.longest) {
    TokenizedSamples& samples = set_.samples;
    set_.examples = count;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t length = lengths.draw(uint64_t(i));
      for (int64_t t = 0; t < length; ++t) {
        // Rank r has a probability of about 1 / r: the logarithm of the rank is uniform.
        const double u = unit_interval(bits(i, t));
        const double rank = std::exp(u * std::log(double(vocabulary_size)));
        samples.ids.push_back(int32_t(std::min(int64_t(rank), vocabulary_size) - 1));
      }
      samples.offsets.push_back(int64_t(samples.ids.size()));
      samples.second.push_back(uint32_t(of_tokens_ ? length / 10 : length));
      const int64_t values = of_tokens_ ? length : kClasses;
      targets_.push_back(int32_t(bits(i, -1) % uint32_t(values)));
    }
  }

  TaskKind kind() const override { return kind_; }
  Head head() const override {
    return {traits_of(kind_).head, words_ > 0 ? words_ : of_tokens_ ? 2 : kClasses};
  }
  bool keeps_head() const override { return false; }
  int64_t max_length() const override { return longest_; }
  const SampleSet& train_set() const override { return set_; }
  const SampleSet* eval_set() const override { return nullptr; }
  std::vector<std::string> describe() const override { return {}; }
  TrainingArrays training_arrays() const override {
    TrainingArrays arrays;
    arrays.kind = kind_;
    arrays.head = head();
    arrays.samples = set_.samples;
    arrays.labels = targets_;
    if (of_tokens_) arrays.ends = targets_;
    if (words_ == 0) return arrays;
    arrays.word_kinds = word_kinds_;
    arrays.masking.words = words_;
    arrays.masking.mask_id = 0;
    return arrays;
  }
  void release_training_arrays() override {
    set_.samples = {};
    targets_ = {};
  }

  std::unique_ptr<Evaluator> start_evaluation() override {
    throw internal_error("a benchmark has nothing to evaluate");
  }
  std::string best_metric() const override { return ""; }
  bool larger_is_better(const std::string&) const override { return false; }
  std::vector<std::string> metric_names() const override { return {}; }
  std::string config_json() const override { return "{}"; }

 private:
  static uint32_t bits(int64_t sample, int64_t place) {
    return philox(kTokenKey, {uint32_t(sample), uint32_t(place), 0, 0})[0];
  }

  TaskKind kind_;
  bool of_tokens_;  // the head has outputs for every token
  int64_t words_;   // number of masked single-piece words, else 0
  std::vector<uint8_t> word_kinds_ = std::vector<uint8_t>(size_t(words_));
  int64_t longest_;
  SampleSet set_;
  std::vector<int32_t> targets_;  // (N) labels, or starts and ends of one-token answers
};

}  // namespace

std::unique_ptr<Task> make_synthetic_task(TaskKind kind, const LengthDistribution& lengths,
                                          int64_t count, int64_t vocabulary_size) {
  return std::make_unique<SyntheticTask>(kind, lengths, count, vocabulary_size);
}

}  // namespace finetune
