// train's options are validated where they are declared: ranges and words.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../contains.h"
#include "core/error.h"
#include "core/text/text.h"
#include "error_line.h"
#include "train/options/options.h"
#include "train/options/table/option_table.h"
#include "train/schedule.h"

namespace finetune {
namespace {

TrainOptions good() {
  TrainOptions o;
  o.model = "m";
  o.train = {"t"};
  o.output = "o";
  return o;
}

std::string refusal(const TrainOptions& o) {
  return test::error_line(ExitCode::usage, [&] { validate(o); });
}

// Stores `value`; false if the option is not a number or `value` does not fit its type.
struct SetNumber {
  double value;

  bool operator()(double* to) const { return *to = value, true; }
  bool operator()(std::optional<double>* to) const { return *to = value, true; }
  bool operator()(int64_t* to) const { return is_whole() && (*to = int64_t(value), true); }
  bool operator()(std::optional<int64_t>* to) const {
    return is_whole() && (*to = int64_t(value), true);
  }
  template <typename Other>
  bool operator()(Other*) const {
    return false;
  }

 private:
  bool is_whole() const { return value == double(int64_t(value)) && std::abs(value) < 9e18; }
};

}  // namespace

TEST_CASE("every range of an option holds at its ends and no further") {
  int ranges = 0;
  for (const TrainOption& option : train_options()) {
    const OptionInfo& info = option.info;
    auto check = [&](double value, bool allowed) {
      TrainOptions o = good();
      o.pipeline_schedule = "interleaved";  // only this schedule has chunks
      if (info.name == "window-stride" || info.name == "max-windows") o.long_text = "windows";
      if (info.name == "folds") o.recipe = "quick";
      if (info.name == "offload-activations") o.recompute = true, o.device = "cuda";
      if (!std::visit(SetNumber{value}, option.in(o))) return;
      const std::string message = refusal(o);
      CAPTURE(info.name);
      CAPTURE(value);
      CHECK(message.empty() == allowed);
      if (!allowed) CHECK(test::contains(message, concat("--", info.name, " ")));
    };
    const OptionRange& range = info.range;
    if (std::isinf(range.least)) continue;
    ++ranges;
    check(range.least, !range.above_least);
    check(range.least - 1, false);
    if (std::isinf(range.most)) continue;
    check(range.most, !range.below_most);
    check(range.most + 1, false);
  }
  CHECK(ranges == 40);
}

TEST_CASE("a range is written in words") {
  TrainOptions o = good();
  o.epochs = 0;
  CHECK(refusal(o) == "--epochs 0: must be above 0 and at most 1000000");
  o = good();
  o.batch_size = 0;
  CHECK(refusal(o) == "--batch-size 0: must be between 1 and 16777216");
  o = good();
  o.dropout = 1;
  CHECK(refusal(o) == "--dropout 1: must be at least 0 and below 1");
  o = good();
  o.max_steps = 0;
  CHECK(refusal(o) == "--max-steps 0: must be at least 1");
  o = good();
  o.adam_epsilon = 1e-60;
  CHECK(refusal(o) == "--adam-epsilon 1e-60: must be above 0 (in single precision)");
  o = good();
  o.weight_decay = std::numeric_limits<double>::quiet_NaN();
  CHECK(refusal(o) == "--weight-decay nan: must be a finite number");
}

TEST_CASE("a word that is none of an option's is refused wherever it came from") {
  int options = 0;
  TrainOptions all = good();
  all.eval = {"e"};
  for (const TrainOption& option : train_options()) {
    const OptionInfo& info = option.info;
    const auto* target = std::get_if<std::string TrainOptions::*>(&option.member);
    if (!target || info.words.empty()) continue;
    ++options;
    std::string& member = all.*(*target);
    const std::string before = member;
    for (std::string_view word : split(info.words, '|')) {
      member = word;
      TrainOptions given = all;
      if (word == "distinct") {  // of --eval-split: rows have to be held out
        given.eval = {};
        given.eval_fraction = 0.1;
      }
      CHECK(refusal(given).empty());
    }
    member = "linaer";
    CHECK(test::contains(refusal(all), concat("--", info.name, " 'linaer': must be one of ")));
    member = before;
  }
  CHECK(options == 14);
  all.schedule = "";
  CHECK(test::contains(refusal(all), "--schedule '': must be one of linear, cosine"));
}

TEST_CASE("a row says which tasks its option is for") {
  const auto is_for = [](std::string_view name, TaskKind task) {
    const TrainOption* option = find_train_option(name);
    REQUIRE(option);
    return !is_foreign(option->info, task);
  };
  const auto first_task = [](std::string_view name) {
    return task_of(find_train_option(name)->info);
  };
  CHECK_FALSE(is_for("doc-stride", TaskKind::mlm));
  CHECK_FALSE(is_for("mask-probability", TaskKind::qa));
  CHECK_FALSE(is_for("text-column", TaskKind::qa));
  CHECK(is_for("text-column", TaskKind::mlm));
  CHECK(is_for("text-column", TaskKind::classification));
  CHECK(is_for("lr", TaskKind::mlm));
  CHECK_FALSE(is_for("label-column", TaskKind::mlm));
  CHECK_FALSE(first_task("lr"));
  CHECK(first_task("text-column") == TaskKind::classification);
  CHECK(first_task("doc-stride") == TaskKind::qa);
  CHECK(first_task("distinct") == TaskKind::mlm);
}

TEST_CASE("words of schedules name their kinds") {
  CHECK(schedule_named("linear") == ScheduleKind::linear);
  CHECK(schedule_named("cosine") == ScheduleKind::cosine);
  CHECK(schedule_named("constant") == ScheduleKind::constant);
  CHECK(schedule_named("polynomial") == ScheduleKind::polynomial);
  CHECK_THROWS_AS(schedule_named("linaer"), Error);
}

}  // namespace finetune
