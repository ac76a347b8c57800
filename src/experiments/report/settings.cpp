// The head of a report on several runs: compared settings, and the effect of each option.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "experiments/compare/noise.h"
#include "experiments/report/page/charts.h"
#include "experiments/report/page/html.h"
#include "experiments/report/sections.h"

namespace finetune {
namespace {

constexpr size_t kMostValueBytes = 300;
constexpr size_t kMostPictures = 6;
constexpr size_t kMostPlaces = 12;  // of values on a picture's axis

std::string setting_name(const RunComparison& comparison, const RunGroup& group) {
  std::string name;
  for (size_t i = 0; i < comparison.options.size(); ++i) {
    name += concat(name.empty() ? "" : ", ", comparison.options[i], " ",
                   group.values[i].empty() ? "not given" : group.values[i]);
  }
  return name;
}

// Returns the setting of each run. A repeated run has the setting of the run that it repeats.
std::vector<size_t> settings_of_runs(const RunComparison& comparison, size_t runs) {
  std::vector<size_t> of_run(runs);
  for (size_t g = 0; g < comparison.groups.size(); ++g) {
    for (size_t run : comparison.groups[g].runs) of_run[run] = g;
  }
  for (const RepeatedRun& each : comparison.repeated) of_run[each.run] = of_run[each.of];
  return of_run;
}

std::string difference_text(const RunGroup& group) {
  if (!group.difference) return "";
  const std::string sign = group.difference->mean < 0 ? "" : "+";
  return concat(sign, shown_number(group.difference->mean), ", ",
                !group.difference->low              ? "noise not known"
                : group.difference->more_than_noise ? "more than noise"
                                                    : "within noise");
}

std::string table_html(const RunComparison& c) {
  std::vector<std::string> header = c.options;
  header.emplace_back("runs");
  for (size_t m = 0; m < c.shown; ++m) header.push_back(metric_title(c.metrics[m]));
  header.insert(header.end(), {"difference to the best", ""});
  HtmlTable table("Settings", header, true);
  for (size_t g = 0; g < c.groups.size(); ++g) {
    const RunGroup& group = c.groups[g];
    for (const std::string& value : group.values) table.text(value, kMostValueBytes);
    table.number(double(group.runs.size()));
    for (size_t m = 0; m < c.shown; ++m) table.estimate(group.metrics.at(c.metrics[m]));
    table.text(difference_text(group)).text(g == c.best ? "best" : "");
    if (g == c.best) table.mark_row();
    table.end_row();
  }
  table.note(
      "Means over runs that differ only in their seed, ± their standard deviation. Whether a "
      "difference is more than noise is judged by a paired bootstrap over the rows and by the "
      "spread over seeds.");
  return concat("<h2>Settings</h2>\n", table.region());
}

// Returns places of an option's values on an axis: numbers by size, or by logarithm if they span a
// factor of 5; other values by their order.
std::vector<double> places_of(const std::vector<std::string>& values) {
  std::vector<double> places;
  for (const std::string& value : values) {
    const auto number = parse_double(value);
    if (!number || !std::isfinite(*number)) break;
    places.push_back(*number);
  }
  const bool are_numbers = places.size() == values.size();
  if (are_numbers && places.front() > 0 && places.back() / places.front() >= 5) {
    for (double& place : places) place = std::log(place);
  }
  if (are_numbers) return places;
  places.resize(values.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = double(i);
  return places;
}

// Returns the distinct values of an option; numbers are sorted by size.
std::vector<std::string> values_of(const RunComparison& c, size_t option) {
  std::vector<std::string> values;
  for (const RunGroup& group : c.groups) values.push_back(group.values[option]);
  std::sort(values.begin(), values.end(), [](const std::string& a, const std::string& b) {
    const auto x = parse_double(a), y = parse_double(b);
    return x && y && *x != *y ? *x < *y : a < b;
  });
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// Draws each setting's metric over the values of one option, with standard deviations as whiskers.
std::string option_html(const RunComparison& c, const RunSettings& settings, size_t option) {
  const std::vector<std::string> values = values_of(c, option);
  const std::vector<double> places = places_of(values);
  const std::string metric = metric_title(c.deciding()), &name = c.options[option];
  std::vector<double> ends;
  for (const RunGroup& group : c.groups) {
    const Estimate& e = group.metrics.at(c.deciding());
    ends.insert(ends.end(), {e.mean - e.sd, e.mean + e.sd});
  }
  const double margin = 0.08 * std::max(1e-9, places.back() - places.front());
  const PlotArea area = plot_area({places.front() - margin, places.back() + margin},
                                  rounded_outwards(interval_of(ends), 6));
  Canvas canvas;
  draw_axes(area, "", metric, canvas);
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string shown = fitting_text(values[i].empty() ? "not given" : values[i], 90);
    canvas.text(area.x(places[i]), area.bottom + 15, Anchor::middle, shown);
  }
  canvas.text((area.left + area.right) / 2, area.bottom + 30, Anchor::middle, name, "name");
  HtmlTable table(concat(metric, " by ", name), {name, "setting", metric, "standard deviation"});
  for (size_t g = 0; g < c.groups.size(); ++g) {
    const Estimate& e = c.groups[g].metrics.at(c.deciding());
    const auto place = std::find(values.begin(), values.end(), c.groups[g].values[option]);
    const double x = area.x(places[size_t(place - values.begin())]);
    if (e.runs > 1) canvas.line(x, area.y(e.mean - e.sd), x, area.y(e.mean + e.sd), line_style(g));
    canvas.circle(x, area.y(e.mean), g == c.best ? 5 : 3.5, dot_style(g),
                  concat(settings.names[g], ": ", report_number(e.mean)));
    table.text(*place, kMostValueBytes).text(settings.names[g], kMostValueBytes).number(e.mean);
    table.number(e.sd).end_row();
  }
  Picture picture = framed_picture(concat(metric, " by ", name), canvas);
  picture.description = concat(counted(c.groups.size(), "setting"), " at ",
                               counted(values.size(), "value"), " of ", name);
  return figure_html(picture, table);
}

std::string options_html(const RunComparison& c, const RunSettings& settings) {
  std::string figures;
  size_t drawn = 0;
  for (size_t i = 0; i < c.options.size() && drawn < kMostPictures; ++i) {
    const size_t count = values_of(c, i).size();
    if (count < 2 || count > kMostPlaces) continue;
    figures += option_html(c, settings, i);
    ++drawn;
  }
  if (figures.empty()) return "";
  return concat(
      "<div class=\"figures\">\n", figures,
      "</div>\n<p class=\"note\">A colour is a setting, the large dot the best one, a line one "
      "standard deviation to either side.</p>\n");
}

// "Accuracy 0.712 ± 0.004 with lr 0.003, batch-size 16: the best of 6 settings".
std::string verdict(const RunComparison& c, const RunSettings& settings, size_t runs) {
  const Estimate& best = c.groups[c.best].metrics.at(c.deciding());
  const std::string spread = best.sd > 0 ? concat(" ± ", shown_number(best.sd)) : "";
  const std::string value =
      concat(metric_title(c.deciding()), " ", shown_number(best.mean), spread);
  if (c.groups.size() == 1) return concat(value, " over ", counted(runs, "run"));
  return concat(value, " with ", settings.names[c.best], ": the best of ",
                counted(c.groups.size(), "setting"));
}

// A line for each run, where no run is the best.
std::string verdicts_html(const std::vector<RunRecord>& runs) {
  const std::vector<std::string> names = run_names(runs);
  std::string out;
  for (size_t r = 0; r < runs.size(); ++r) {
    out += concat("<p class=\"lead\"><bdi>", markup_escaped(names[r], 300),
                  "</bdi>: ", markup_escaped(verdict_of(runs[r]), 300), "</p>\n");
  }
  return out;
}

}  // namespace

RunSettings settings_of(const std::vector<RunRecord>& runs) {
  RunSettings out;
  const std::vector<std::string> names = run_names(runs);
  if (runs.size() > 1) {
    try {
      out.comparison = compare_runs(runs, {}, {});
      out.best = best_run(*out.comparison, runs);
    } catch (const Error&) {  // such as runs of several tasks
    }
  }
  if (!out.comparison) {
    out.names = names;
    out.of_run.resize(runs.size());
    std::iota(out.of_run.begin(), out.of_run.end(), size_t{0});
    return out;
  }
  RunComparison& comparison = *out.comparison;
  add_differences(runs, comparison);
  out.of_run = settings_of_runs(comparison, runs.size());
  for (const RunGroup& group : comparison.groups) {
    out.names.push_back(comparison.options.empty() ? names[group.runs[0]]
                                                   : setting_name(comparison, group));
  }
  return out;
}

std::string settings_html(const std::vector<RunRecord>& runs, const RunSettings& settings) {
  if (!settings.comparison) {
    return concat("<h1>", counted(runs.size(), "run"), "</h1>\n", verdicts_html(runs));
  }
  const RunComparison& c = *settings.comparison;
  const std::string best = run_names(runs)[settings.best];
  return concat("<h1>", markup_escaped(verdict(c, settings, runs.size()), 300), "</h1>\n",
                "<p class=\"note\">The best run is <bdi>", markup_escaped(best, 300),
                "</bdi>:</p>\n", result_html(runs[settings.best], true), table_html(c),
                options_html(c, settings));
}

}  // namespace finetune
