// Op table: the four losses and their gradients.
#include <cmath>

#include "core/text/text.h"
#include "op_case.h"

namespace finetune::test {
namespace {

constexpr float kScale = 0.125f;  // 1 / denominator
constexpr const char* kLossReason = "float sums over classes or tokens, exponential and logarithm";

// The gradient of the sum of the losses, times kScale. `place`: "own", "logits" (dlogits is
// logits), "absent", or "left out": own, and every second sample has a scale of 0 and invalid
// values.
OpCaseMaker start(const char* op, const std::string& shape, int64_t rows, int64_t cols,
                  int64_t samples, const std::string& place) {
  OpCaseMaker maker(op, concat(shape, " dlogits: ", place), 4 * sum_tolerance(std::max(rows, cols)),
                    kLossReason);
  maker.input("logits", rows, cols, 0, 4).result("losses", 1, samples);
  maker.constant("dlosses", 1, samples, kScale).work(double(rows * cols));
  if (place == "own" || place == "left out") maker.result("dlogits", rows, cols);
  if (place == "logits") maker.view("dlogits", "logits", 0, cols);
  return maker;
}

// `first[b]` is the first row of sample b; the last entry is the number of rows.
OpCase finish(OpCaseMaker& maker, const OpRun& run, const std::string& place,
              const std::vector<int32_t>& first) {
  if (place == "absent") return maker.run(run, {"losses"});
  if (place == "left out") {
    const size_t samples = first.size() - 1;
    maker.input("scales", 1, int64_t(samples));
    OpCase& made = maker.get();
    OpBuffer& logits = made.buffers["logits"];
    for (size_t b = 0; b < samples; ++b) {
      made.buffers["scales"].values.own()[b] = b % 2 == 0 ? 0.0f : kScale * float(b);
      if (b % 2 != 0) continue;
      for (int64_t i = first[b] * logits.stride; i < first[b + 1] * logits.stride; ++i) {
        logits.values.own()[size_t(i)] = i % 2 == 0 ? NAN : INFINITY;
      }
    }
  }
  maker.run(run, {"losses", "dlogits"});
  if (place == "own") maker.gradient_of(run, {{"losses", "dlosses"}}, {{"logits", "dlogits"}});
  return maker;
}

LossScale scale_of(const OpData& t) {
  return t["scales"] ? LossScale(t["scales"].f32()) : LossScale(kScale);
}

// One row per sample.
std::vector<int32_t> each_row(int64_t rows) {
  std::vector<int32_t> first;
  for (int32_t b = 0; b <= int32_t(rows); ++b) first.push_back(b);
  return first;
}

void make_positive(OpBuffer& buffer) {
  for (float& x : buffer.values.own()) x = 0.25f + std::abs(x);
}

void add_class_losses(std::vector<OpCase>& table, const std::string& place) {
  struct Shape {
    int64_t rows, classes;
  };
  for (Shape s : {Shape{1, 2}, {7, 24}, {33, 7}, {32, 495}, {5, 1}}) {
    const std::string shape = concat("(", s.rows, ",", s.classes, ")");
    for (bool weighted : {false, true}) {
      auto weigh = [&](OpCaseMaker& maker) {
        if (!weighted) return;
        maker.input("weights", 1, s.classes).get().shape += " weights";
        make_positive(maker.get().buffers["weights"]);
      };
      for (float smoothing : {0.0f, 0.1f}) {
        OpCaseMaker maker = start("cross_entropy", concat(shape, " smoothing ", smoothing), s.rows,
                                  s.classes, s.rows, place);
        weigh(maker);
        std::vector<int32_t> labels;
        for (int64_t b = 0; b < s.rows; ++b) labels.push_back(int32_t((b * 5 + 1) % s.classes));
        maker.integers("labels", labels);
        table.push_back(finish(
            maker,
            [smoothing](Backend& backend, OpData& t) {
              backend.cross_entropy(t["logits"], t.ints("labels"), t["weights"], smoothing,
                                    scale_of(t), t["losses"], t["dlogits"]);
            },
            place, each_row(s.rows)));
      }
      OpCaseMaker maker = start("binary_cross_entropy", shape, s.rows, s.classes, s.rows, place);
      weigh(maker);
      maker.input("targets", s.rows, s.classes);
      for (float& target : maker.get().buffers["targets"].values.own()) target = target > 0 ? 1 : 0;
      table.push_back(finish(
          maker,
          [](Backend& backend, OpData& t) {
            backend.binary_cross_entropy(t["logits"], t["targets"], t["weights"], scale_of(t),
                                         t["losses"], t["dlogits"]);
          },
          place, each_row(s.rows)));
    }
  }
}

// Over a vocabulary, which may use other kernels.
void add_word_losses(std::vector<OpCase>& table, const std::string& place) {
  constexpr int64_t kWords = 2051;
  for (int64_t rows : {1, 5}) {
    OpCaseMaker maker =
        start("cross_entropy", concat("(", rows, ",", kWords, ")"), rows, kWords, rows, place);
    std::vector<int32_t> labels;
    for (int64_t b = 0; b < rows; ++b) labels.push_back(int32_t((b * 1000 + kWords - 1) % kWords));
    maker.integers("labels", labels);
    table.push_back(finish(
        maker,
        [](Backend& backend, OpData& t) {
          backend.cross_entropy(t["logits"], t.ints("labels"), {}, 0, scale_of(t), t["losses"],
                                t["dlogits"]);
        },
        place, each_row(rows)));
  }
}

}  // namespace

void add_loss_cases(std::vector<OpCase>& table) {
  for (const std::string place : {"own", "logits", "absent", "left out"}) {
    add_class_losses(table, place);
    add_word_losses(table, place);
    for (int64_t rows : {1, 7, 33}) {
      OpCaseMaker maker = start("squared_error", concat("(", rows, ",1)"), rows, 1, rows, place);
      maker.input("targets", 1, rows, 0, 4);
      table.push_back(finish(
          maker,
          [](Backend& backend, OpData& t) {
            backend.squared_error(t["logits"], t["targets"], scale_of(t), t["losses"],
                                  t["dlogits"]);
          },
          place, each_row(rows)));
    }
    const std::vector<std::vector<int32_t>> offsets = {
        {0, 1}, {0, 7, 8, 41}, {0, 512}, {0, 384, 500, 501, 760}};
    for (const auto& segments : offsets) {
      std::vector<int32_t> starts, ends;
      std::string shape = "offsets";
      for (size_t b = 0; b + 1 < segments.size(); ++b) {
        int32_t length = segments[b + 1] - segments[b];
        starts.push_back(length / 3);
        ends.push_back(length - 1);
        shape += concat(" ", segments[b + 1]);
      }
      OpCaseMaker maker =
          start("span_cross_entropy", shape, segments.back(), 2, int64_t(starts.size()), place);
      maker.integers("offsets", segments).integers("starts", starts).integers("ends", ends);
      table.push_back(finish(
          maker,
          [](Backend& backend, OpData& t) {
            backend.span_cross_entropy(t["logits"], t.segments("offsets"), t.ints("starts"),
                                       t.ints("ends"), scale_of(t), t["losses"], t["dlogits"]);
          },
          place, segments));
    }
  }
}

}  // namespace finetune::test
