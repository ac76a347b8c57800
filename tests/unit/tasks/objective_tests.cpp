// Training arrays copied through shared blocks keep their losses.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/error.h"
#include "core/numeric/philox.h"
#include "data/packing.h"
#include "tasks/classification/rows/dataset.h"
#include "tasks/objective.h"

using namespace finetune;

namespace {

// All arrays that a task may have, filled at random.
struct MadeUp {
  TrainingArrays scalars;
  TokenizedSamples samples;
  std::vector<int32_t> labels, ends, set_ids;
  std::vector<float> targets, class_weights, sample_weights;
  std::vector<int64_t> set_offsets;

  TrainingArrays arrays() const {
    TrainingArrays out = scalars;
    out.samples = samples;
    out.labels = labels;
    out.ends = ends;
    out.targets = targets;
    out.set_offsets = set_offsets;
    out.set_ids = set_ids;
    out.class_weights = class_weights;
    out.sample_weights = sample_weights;
    return out;
  }
};

uint32_t random_below(uint32_t limit) {
  static uint32_t count = 0;
  return philox({1, 2}, {++count, 0, 0, 0})[0] % limit;
}
float random_value() {
  return float(random_below(2001)) / 500 - 2;
}

MadeUp made_up(TaskKind kind, ProblemType problem, int64_t count, bool weights = false) {
  MadeUp out;
  const bool qa = kind == TaskKind::qa, regression = problem == ProblemType::regression;
  const int64_t outputs = qa ? 2 : regression ? 1 : 5;
  out.scalars.kind = kind;
  out.scalars.problem = problem;
  out.scalars.head = {qa ? HeadKind::token : HeadKind::sequence, outputs};
  out.scalars.label_smoothing = weights ? 0.1f : 0.0f;
  if (!qa && problem == ProblemType::multi_label) out.set_offsets.push_back(0);
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t length = 2 + random_below(9);
    for (uint32_t t = 0; t < length; ++t) out.samples.ids.push_back(int32_t(random_below(1000)));
    out.samples.offsets.push_back(int64_t(out.samples.ids.size()));
    out.samples.second.push_back(random_below(length));
    if (qa) {
      out.labels.push_back(int32_t(random_below(length)));
      out.ends.push_back(int32_t(random_below(length)));
    } else if (regression) {
      out.targets.push_back(random_value());
    } else if (problem == ProblemType::single_label) {
      out.labels.push_back(int32_t(random_below(5)));
    } else {
      for (int32_t id = 0; id < 5; ++id) {
        if (random_below(3) == 0) out.set_ids.push_back(id);
      }
      out.set_offsets.push_back(int64_t(out.set_ids.size()));
    }
  }
  if (weights) {
    for (int64_t i = 0; i < outputs; ++i) out.class_weights.push_back(0.5f + float(i) / 3);
    for (int64_t i = 0; i < count; ++i) out.sample_weights.push_back(1 / float(1 + i % 3));
  }
  return out;
}

// Every combination of a task's arrays, with this many samples.
std::vector<MadeUp> all_kinds(int64_t count) {
  std::vector<MadeUp> out;
  for (bool weights : {false, true}) {
    out.push_back(made_up(TaskKind::classification, ProblemType::single_label, count, weights));
  }
  out.push_back(made_up(TaskKind::classification, ProblemType::multi_label, count));
  out.push_back(made_up(TaskKind::classification, ProblemType::regression, count));
  out.push_back(made_up(TaskKind::qa, ProblemType::single_label, count));
  return out;
}

// Memory like a mapping's, with an inaccessible border.
class Block {
 public:
  explicit Block(size_t bytes)
      : bytes_(bytes),
        memory_(std::aligned_alloc(4096, (bytes + kBorder + 4095) / 4096 * 4096), &std::free) {
    std::memset(data(), 0xAA, bytes + kBorder);
  }
  char* data() const { return static_cast<char*>(memory_.get()); }
  size_t size() const { return bytes_; }
  bool border_is_whole() const {
    return std::all_of(data() + bytes_, data() + bytes_ + kBorder,
                       [](char c) { return c == char(0xAA); });
  }

 private:
  static constexpr size_t kBorder = 256;
  size_t bytes_;
  std::shared_ptr<void> memory_;
};

template <typename T>
void check_copied(std::span<const T> copy, std::span<const T> original, const Block& block) {
  CHECK(std::ranges::equal(copy, original));
  if (copy.empty()) return;
  const char* begin = reinterpret_cast<const char*>(copy.data());
  CHECK(begin > block.data());
  CHECK(begin + copy.size_bytes() <= block.data() + block.size());
  CHECK((begin - block.data()) % 64 == 0);
}

void check_equal(const TrainingArrays& copy, const TrainingArrays& original, const Block& block) {
  CHECK(copy.kind == original.kind);
  CHECK(copy.problem == original.problem);
  CHECK(copy.head.kind == original.head.kind);
  CHECK(copy.head.outputs == original.head.outputs);
  CHECK(copy.label_smoothing == original.label_smoothing);
  CHECK(copy.samples.size() == original.samples.size());
  check_copied(copy.samples.ids, original.samples.ids, block);
  check_copied(copy.samples.offsets, original.samples.offsets, block);
  check_copied(copy.samples.second, original.samples.second, block);
  check_copied(copy.labels, original.labels, block);
  check_copied(copy.ends, original.ends, block);
  check_copied(copy.targets, original.targets, block);
  check_copied(copy.set_offsets, original.set_offsets, block);
  check_copied(copy.set_ids, original.set_ids, block);
  check_copied(copy.class_weights, original.class_weights, block);
  check_copied(copy.sample_weights, original.sample_weights, block);
  check_copied(copy.word_kinds, original.word_kinds, block);
  CHECK(copy.masking.seed == original.masking.seed);
  CHECK(copy.masking.probability == original.masking.probability);
  CHECK(copy.masking.words == original.masking.words);
  CHECK(copy.masking.mask_id == original.masking.mask_id);
  CHECK(copy.masking.whole_words == original.masking.whole_words);
}

struct Losses {
  std::vector<float> losses, dlogits;
  double denominator = 0;
  friend bool operator==(const Losses&, const Losses&) = default;
};

// The losses of the samples `indices`, for logits that depend only on the place.
Losses loss_of(const TrainingArrays& arrays, const std::vector<uint32_t>& indices) {
  auto backend = make_reference_backend();
  auto objective = make_objective(arrays);
  PackedBatch batch;
  pack(objective->samples(), indices, {}, batch);
  objective->complete(batch);
  DeviceBatch device(*backend, batch.tokens(), batch.sequences());
  objective->reserve(*backend, batch.sequences());
  objective->upload_targets(*backend, batch);
  const int64_t rows =
      arrays.head.kind == HeadKind::token ? batch.tokens() : int64_t(indices.size());
  Losses out;
  out.denominator = objective->loss_denominator(indices);
  device.upload(batch, float(1 / out.denominator));
  out.losses.resize(indices.size());
  out.dlogits.resize(size_t(rows * arrays.head.outputs));
  for (size_t i = 0; i < out.dlogits.size(); ++i) out.dlogits[i] = float(i % 7) - 3;
  Tensor logits = matrix(out.dlogits.data(), rows, arrays.head.outputs);
  objective->loss(*backend, device, logits, vector(out.losses.data(), int64_t(indices.size())),
                  logits);
  return out;
}

}  // namespace

TEST_CASE("a block gives back the arrays, wherever it is mapped") {
  for (int64_t count : {0, 1, 17, 300}) {
    for (const MadeUp& made : all_kinds(count)) {
      CAPTURE(count);
      CAPTURE(int(made.scalars.problem));
      const TrainingArrays original = made.arrays();
      Block block(block_bytes(original));
      check_equal(copy_arrays(original, block.data()), original, block);
      CHECK(block.border_is_whole());

      Block elsewhere(block.size());
      std::memcpy(elsewhere.data(), block.data(), block.size());
      std::memset(block.data(), 0, block.size());
      const TrainingArrays found = arrays_in(elsewhere.data());
      check_equal(found, original, elsewhere);
      CHECK(block_bytes(found) == elsewhere.size());
    }
  }
}

TEST_CASE("no arrays at all are a block too") {
  const TrainingArrays none;
  Block block(block_bytes(none));
  check_equal(copy_arrays(none, block.data()), none, block);
}

TEST_CASE("copied arrays give the losses of the original") {
  for (const MadeUp& made : all_kinds(40)) {
    CAPTURE(int(made.scalars.problem));
    const TrainingArrays original = made.arrays();
    Block block(block_bytes(original));
    const TrainingArrays copy = copy_arrays(original, block.data());
    CHECK(make_objective(copy)->samples().ids.data() == copy.samples.ids.data());
    for (const auto& indices : {std::vector<uint32_t>{3}, {39, 0, 8, 20, 8, 11}}) {
      const Losses result = loss_of(copy, indices);
      CHECK(result == loss_of(original, indices));
      CHECK(std::ranges::any_of(result.losses, [](float loss) { return loss > 0; }));
    }
    CHECK(loss_of(copy, {3}) != loss_of(copy, {8}));
  }
}

TEST_CASE("blocks that are none, and arrays that do not fit each other, are refused") {
  const MadeUp made = made_up(TaskKind::qa, ProblemType::single_label, 5);
  const TrainingArrays original = made.arrays();
  Block block(block_bytes(original));
  CHECK_THROWS_AS(arrays_in(block.data()), Error);
  CHECK_THROWS_AS(copy_arrays(original, block.data() + 8), Error);
  copy_arrays(original, block.data());
  ++block.data()[8];  // the version
  CHECK_THROWS_AS(arrays_in(block.data()), Error);

  for (const MadeUp& each : all_kinds(5)) {
    TrainingArrays arrays = each.arrays();
    CHECK_NOTHROW(make_objective(arrays));
    arrays.samples.second = arrays.samples.second.first(4);
    CHECK_THROWS_AS(make_objective(arrays), Error);
  }
}
