// Curves over steps, from metrics.jsonl.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/files/files.h"
#include "core/log.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "experiments/report/page/charts.h"
#include "experiments/report/sections.h"
#include "tasks/scores/main_measure.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

constexpr size_t kMostPoints = 1600;    // of a picture, over all runs
constexpr size_t kMostRunPoints = 200;  // of one run
constexpr size_t kLeastRunPoints = 10;
constexpr size_t kMostPictures = 100;

using Points = std::vector<std::pair<double, double>>;
using Curves = std::map<std::string, Points>;  // by metric

// Evaluation curves show the model alone. If the exported model is mixed with n-grams, a separate
// mark shows the result of the mix.
bool has_mix(const RunRecord& run) {
  return run.metrics.contains("eval_mix_ngrams");
}

bool is_drawn(const std::string& name) {
  return name == "loss" || name == "lr" || name == "grad_norm" ||
         (name.starts_with("eval_") && name != "eval_runtime" &&
          name != "eval_samples_per_second" && !name.ends_with("_total"));
}

Curves curves_of(const std::vector<NamedNumbers>& lines) {
  Curves curves;
  for (const NamedNumbers& line : lines) {
    const auto step =
        std::find_if(line.begin(), line.end(), [](const auto& n) { return n.first == "step"; });
    if (step == line.end()) continue;
    for (const auto& [name, value] : line) {
      if (is_drawn(name)) curves[name].emplace_back(step->second, value);
    }
  }
  return curves;
}

// Says what a run's metrics.jsonl lacks; empty if it is complete.
std::string missing_from(const RunRecord& run, const MetricsLines& read, const Curves& curves) {
  if (read.damaged > 0) {
    return concat(counted(read.damaged, "line"), read.damaged == 1 ? " is" : " are",
                  " damaged and not drawn");
  }
  const auto steps = run.metrics.find("train_steps");
  if (steps == run.metrics.end() || steps->second < 1) return "";
  const auto loss = curves.find("loss");
  const double last = loss == curves.end() ? 0 : loss->second.back().first;
  // Only each `every`-th step is logged.
  const double every = parse_double(run.option("log-every")).value_or(1);
  if (steps->second - last < every) return "";
  return last == 0 ? "there are no training steps in it"
                   : concat("it ends at step ", int64_t(last), " of ", int64_t(steps->second));
}

// Returns the curves of a run. Warns if some are incomplete and says so in `notes`.
Curves read_curves(const RunRecord& run, const std::string& name, std::string& notes) {
  const fs::path path = run.directory / "metrics.jsonl";
  const MetricsLines read = read_metrics_lines(path);
  Curves curves = curves_of(read.lines);
  const std::string missing = missing_from(run, read, curves);
  if (missing.empty()) return curves;
  warn(printable_path(path), ": ", missing);
  notes += concat("<p class=\"note\">The curves of <bdi>", markup_escaped(name, 300),
                  "</bdi> are not whole. Of its metrics.jsonl: ", missing, ".</p>\n");
  return curves;
}

// Averages groups of neighbouring points; the mean gets the step of the last one.
Points thinned(const Points& points, size_t most) {
  const size_t each = (points.size() + most - 1) / most;
  if (each <= 1) return points;
  Points out;
  for (size_t begin = 0; begin < points.size(); begin += each) {
    const size_t end = std::min(points.size(), begin + each);
    double mean = 0;  // divides first, since a sum of large numbers may overflow
    for (size_t i = begin; i < end; ++i) mean += points[i].second / double(end - begin);
    out.emplace_back(points[end - 1].first, mean);
  }
  return out;
}

// Returns (best step, value) of the mix, or nothing for another metric or a model without a mix.
std::optional<std::pair<double, double>> mix_point(const RunRecord& run,
                                                   const std::string& metric) {
  const auto value = run.metrics.find(metric), step = run.metrics.find("best_step");
  if (!has_mix(run) || !metric.starts_with("eval_") || value == run.metrics.end() ||
      step == run.metrics.end()) {
    return std::nullopt;
  }
  return std::pair(step->second, value->second);
}

std::string curve_html(const std::string& metric, const std::vector<Curves>& runs,
                       const std::vector<std::string>& names, const std::vector<RunRecord>& records,
                       const RunSettings& settings) {
  const size_t most = std::clamp(kMostPoints / runs.size(), kLeastRunPoints, kMostRunPoints);
  std::vector<LineSeries> series;
  size_t thickest = 1;
  bool mixes = false;
  HtmlTable table(metric_title(metric), {"run", "step", metric});
  for (size_t r = 0; r < runs.size(); ++r) {
    const auto found = runs[r].find(metric);
    if (found == runs[r].end()) continue;
    LineSeries one{names[r], settings.of_run[r], thinned(found->second, most)};
    thickest = std::max(thickest, (found->second.size() + most - 1) / most);
    for (const auto& [step, value] : one.points) {
      table.text(one.name).number(step).number(value).end_row();
    }
    series.push_back(std::move(one));
    if (const auto point = mix_point(records[r], metric)) {
      mixes = true;
      LineSeries mix{concat(names[r], ", with n-grams"), settings.of_run[r], {*point}};
      table.text(mix.name).number(point->first).number(point->second).end_row();
      series.push_back(std::move(mix));
    }
  }
  Picture picture = line_picture(metric_title(metric), "step", series);
  if (thickest > 1) picture.note = concat("Points are means of up to ", thickest, " neighbours.");
  if (mixes) {
    picture.note += concat(picture.note.empty() ? "" : " ",
                           "The curve is the model alone; the single mark is the model that was "
                           "exported, together with its n-grams.");
  }
  return figure_html(picture, table);
}

// The number of points of the run that has the most.
size_t longest_curve(const std::vector<Curves>& runs, const std::string& metric) {
  size_t most = 0;
  for (const Curves& run : runs) {
    const auto found = run.find(metric);
    if (found != run.end()) most = std::max(most, found->second.size());
  }
  return most;
}

void add_points(const std::string& metric, const std::vector<Curves>& runs,
                const std::vector<std::string>& names, HtmlTable& table) {
  for (size_t r = 0; r < runs.size(); ++r) {
    const auto found = runs[r].find(metric);
    if (found == runs[r].end()) continue;
    for (const auto& [step, value] : found->second) {
      table.name(names[r]).number(step).text(metric).number(value).end_row();
    }
  }
}

std::string legend_html(const RunSettings& settings) {
  std::string out = "<ul class=\"legend\">\n";
  for (size_t s = 0; s < settings.names.size(); ++s) {
    out += concat(
        "<li><svg class=\"key\" viewBox=\"0 0 28 8\" aria-hidden=\"true\"><polyline "
        "points=\"0,4 28,4\" class=\"",
        line_style(s), "\"/></svg><bdi>", markup_escaped(settings.names[s], 300), "</bdi></li>\n");
  }
  return out + "</ul>\n";
}

}  // namespace

std::string curves_html(const std::vector<RunRecord>& runs, const RunSettings& settings) {
  std::vector<Curves> curves;
  std::vector<std::string> metrics{"loss", "eval_loss", "eval_accuracy", "eval_f1_macro"};
  std::set<std::string> seen(metrics.begin(), metrics.end());
  const std::vector<std::string> names = run_names(runs);
  std::string notes;
  for (size_t r = 0; r < runs.size(); ++r) {
    curves.push_back(read_curves(runs[r], names[r], notes));
    for (const auto& [name, points] : curves.back()) {
      if (!is_repeated_measure(name, runs[r].metrics) && seen.insert(name).second)
        metrics.push_back(name);
    }
  }
  std::string out = concat("<h2>Training</h2>\n", notes);
  HtmlTable once("Measured once", {"run", "step", "metric", "value"});
  std::string pictures, more;
  size_t drawn = 0, listed = 0, left_out = 0;
  for (const std::string& metric : metrics) {
    const size_t longest = longest_curve(curves, metric);
    if (longest == 0) continue;
    if (drawn + listed == kMostPictures) {
      ++left_out;
    } else if (longest == 1) {
      add_points(metric, curves, names, once);
      ++listed;
    } else {
      pictures += curve_html(metric, curves, names, runs, settings);
      ++drawn;
    }
  }
  if (left_out > 0) {
    more = concat("<p class=\"note\">", counted(left_out, "more metric"),
                  left_out == 1 ? " is" : " are", " not drawn.</p>\n");
  }
  if (drawn > 0) {
    if (runs.size() > 1) out += legend_html(settings);
    out += concat("<div class=\"figures\">\n", pictures, "</div>\n");
  }
  if (once.rows() > 0) out += concat("<h3>Measured once</h3>\n", once.region(true));
  out += more;
  if (drawn == 0 && once.rows() == 0) {
    out += "<p class=\"note\">The runs have no metrics.jsonl.</p>\n";
  }
  return out;
}

}  // namespace finetune
