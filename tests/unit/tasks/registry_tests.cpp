// The table of tasks: each row is found by its names, and names existing things.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "core/error.h"
#include "error_line.h"
#include "tasks/registry.h"
#include "tasks/scores/metric_table.h"
#include "temporary_directory.h"

namespace finetune {

TEST_CASE("every task is found by its kind and its name") {
  std::set<std::string_view> names;
  for (const TaskTraits& task : all_tasks()) {
    CHECK(&traits_of(task.kind) == &task);
    CHECK(task_named(task.name) == task.kind);
    CHECK(names.insert(task.name).second);
    const bool own_form = task.recognizes != nullptr;
    CHECK(own_form == !task.data.empty());
    CHECK_FALSE(task.hub_task.empty());
    for (bool made :
         {task.make != nullptr, task.make_objective != nullptr, task.make_evaluator != nullptr,
          task.make_predictor != nullptr, task.stored_options != nullptr}) {
      CHECK(made);
    }
  }
  CHECK(task_words() == "classification|qa|mlm");
  CHECK_FALSE(task_named("summarization"));
  CHECK(traits_of(TaskKind::qa).head_weight(default_architecture()) == "qa_outputs.weight");
  CHECK(traits_of(TaskKind::classification).head_weight(default_architecture()) ==
        "classifier.weight");
}

TEST_CASE("each metric has one row") {
  std::set<std::string_view> names;
  for (const MetricInfo& metric : kMetricTable) {
    CHECK(metric.name.starts_with("eval_"));
    CHECK(names.insert(metric.name).second);
    CHECK(find_metric(metric.name) == &metric);
  }
  CHECK(find_metric("eval_other") == nullptr);
  CHECK(find_metric("eval_f1")->is(kPercent));
  CHECK_FALSE(find_metric("eval_loss")->is(kMeasure));
}

TEST_CASE("a model refuses files that have the form of another task") {
  const test::TemporaryDirectory directory;
  const std::filesystem::path questions =
      directory.write("q.json", R"({"data": [{"paragraphs": []}]})");
  const std::filesystem::path rows = directory.write("r.csv", "text,label\na,b\n");
  const std::string message = test::error_line(
      ExitCode::data, [&] { require_form_of(TaskKind::classification, questions); });
  CHECK(directory.without_path(message) ==
        "q.json: holds questions, but the model was trained for classification");
  CHECK_NOTHROW(require_form_of(TaskKind::qa, questions));
  CHECK_NOTHROW(require_form_of(TaskKind::classification, rows));
  CHECK_NOTHROW(require_form_of(TaskKind::qa, rows));
}

}  // namespace finetune
