// Lays out a comparison of runs.
#include "experiments/compare/comparison_output.h"

#include <algorithm>
#include <cctype>

#include "core/files/file_kind.h"
#include "core/text/counted.h"
#include "core/text/json_value.h"
#include "core/text/printable.h"
#include "core/text/text.h"
#include "data/rows/csv_line.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

using Cells = std::vector<std::string>;

constexpr int kDecimals = 4;
constexpr size_t kLongestCell = 60;

std::string shown_number(double value) {
  return format_fixed(value, kDecimals);
}

std::string shown_estimate(const Estimate& estimate) {
  const std::string mean = shown_number(estimate.mean);
  return estimate.runs > 1 ? concat(mean, " ± ", shown_number(estimate.sd)) : mean;
}

std::string signed_number(double value) {
  return concat(value < 0 ? "" : "+", shown_number(value));
}

Cells seeds_of(const RunGroup& group, const std::vector<RunRecord>& runs) {
  Cells seeds;
  for (size_t run : group.runs) seeds.push_back(runs[run].option("seed"));
  return seeds;
}

std::string shown_noise(const Difference& difference) {
  if (!difference.low) return "noise not known";
  return difference.more_than_noise ? "more than noise" : "within noise";
}

// `brief`: differences are numbers alone.
std::vector<Cells> shown_rows(const RunComparison& c, const std::vector<RunRecord>& runs,
                              bool brief) {
  Cells header{""};
  header.insert(header.end(), c.options.begin(), c.options.end());
  const bool are_single = std::all_of(c.groups.begin(), c.groups.end(),
                                      [](const RunGroup& group) { return group.runs.size() == 1; });
  header.push_back(c.options.empty() || are_single ? "run" : "runs");
  for (size_t m = 0; m < c.shown; ++m) header.push_back(printable(c.metrics[m], kLongestCell));
  const bool several = c.groups.size() > 1;
  if (several) header.push_back(brief ? "difference" : "difference to the best");
  std::vector<Cells> rows{header};
  for (size_t g = 0; g < c.groups.size(); ++g) {
    const RunGroup& group = c.groups[g];
    Cells row{g == c.best && several ? "*" : ""};
    for (const std::string& value : group.values) {
      row.push_back(value.empty() ? "-" : printable(value, kLongestCell));
    }
    row.push_back(group.runs.size() == 1
                      ? printable(runs[group.runs[0]].directory.string(), kLongestCell)
                      : concat(group.runs.size()));
    for (size_t m = 0; m < c.shown; ++m) {
      row.push_back(shown_estimate(group.metrics.at(c.metrics[m])));
    }
    if (several) {
      const auto& difference = group.difference;
      row.push_back(difference ? signed_number(difference->mean) : "");
      if (difference && !brief) row.back() += concat(", ", shown_noise(*difference));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string aligned(const std::vector<Cells>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const Cells& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], count_code_points(row[i]));
    }
  }
  std::string out;
  for (const Cells& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += concat(i == 0 ? "" : "  ", row[i],
                     std::string(widths[i] - count_code_points(row[i]), ' '));
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

size_t width_of(const std::string& table) {
  size_t width = 0;
  for (std::string_view line : split(table, '\n')) width = std::max(width, count_code_points(line));
  return width;
}

// Shows fewer metrics of `c` where the table is wider than `columns`.
std::string fitted_table(RunComparison& c, const std::vector<RunRecord>& runs, size_t columns) {
  std::string table = aligned(shown_rows(c, runs, false));
  const auto is_wide = [&] { return columns > 0 && width_of(table) > columns; };
  while (is_wide() && c.shown > 1) {
    --c.shown;
    table = aligned(shown_rows(c, runs, false));
  }
  return is_wide() ? aligned(shown_rows(c, runs, true)) : table;
}

// Escapes text so that Markdown shows it as it is, without markup, HTML or the end of a cell.
std::string markdown_escaped(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*[]|~#!$@";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto is_word = [&](size_t place) {
      return place < text.size() && std::isalnum(static_cast<unsigned char>(text[place]));
    };
    // Inside a word, as in eval_loss, an underscore is not markup.
    const bool is_emphasis = c == '_' && !(i > 0 && is_word(i - 1) && is_word(i + 1));
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (is_emphasis || kMarkup.find(c) != kMarkup.npos)
      out.append("\\").append(1, c);
    else
      out += c;
  }
  return out;
}

std::string markdown_table(const std::vector<Cells>& rows) {
  std::string out;
  for (size_t r = 0; r < rows.size(); ++r) {
    out += "|";
    for (const std::string& cell : rows[r]) out += concat(" ", markdown_escaped(cell), " |");
    out += "\n";
    if (r == 0) {
      for (size_t i = 0; i < rows[0].size(); ++i) out += "|---";
      out += "|\n";
    }
  }
  return out;
}

std::string name_of_group(const RunComparison& c, const RunGroup& group,
                          const std::vector<RunRecord>& runs) {
  Cells parts;
  for (size_t i = 0; i < c.options.size(); ++i) {
    parts.push_back(
        concat(c.options[i], " ",
               group.values[i].empty() ? "-" : printable(group.values[i], kLongestCell)));
  }
  return parts.empty() ? printable(runs[group.runs[0]].directory.string(), kLongestCell)
                       : join(parts, ", ");
}

std::string sentence_of(const RunComparison& c, const RunGroup& group,
                        const std::vector<RunRecord>& runs) {
  const Difference& d = *group.difference;
  const std::string than = concat(name_of_group(c, group, runs), ": ", signed_number(d.mean));
  if (!d.low) return concat(than, "; noise not known: ", printable(d.unknown, 400));
  std::string line = concat(than, " (95 %: ", signed_number(*d.low), " to ", signed_number(*d.high),
                            "), ", shown_noise(d), " of ", d.noise);
  if (!d.unknown.empty()) line += concat("; rows: ", printable(d.unknown, 400));
  if (d.noise == "rows") line += "; other seeds may differ more, give several of each";
  return line;
}

JsonObject json_of(const Difference& d) {
  JsonObject out{{"mean", d.mean}};
  if (d.low) {
    out.add("interval", JsonArray{*d.low, *d.high});
    out.add("more_than_noise", d.more_than_noise);
    out.add("noise_of", d.noise);
  }
  if (!d.unknown.empty()) out.add("unknown", d.unknown);
  return out;
}

}  // namespace

std::string comparison_text(RunComparison c, const std::vector<RunRecord>& runs, bool markdown,
                            size_t columns) {
  std::string out = markdown ? markdown_table(shown_rows(c, runs, false))
                             : concat(fitted_table(c, runs, columns), "\n");
  const RunGroup& best = c.groups[c.best];
  const bool has_name = !c.options.empty() || best.runs.size() == 1;
  Cells lines{concat("best ", printable(c.deciding(), kLongestCell), ": ",
                     has_name ? name_of_group(c, best, runs) + ", " : "",
                     shown_estimate(best.metrics.at(c.deciding())),
                     best.runs.size() > 1 ? concat(" over ", best.runs.size(), " runs") : "")};
  for (const RunGroup& group : c.groups) {
    if (group.difference) lines.push_back(sentence_of(c, group, runs));
  }
  if (!c.within.empty()) {
    lines.push_back(concat("runs of one row differ in ", join(c.within, ", "), " beside the seed"));
  }
  for (const RepeatedRun& repeated : c.repeated) {
    lines.push_back(concat(printable_path(runs[repeated.run].directory), " repeats ",
                           printable_path(runs[repeated.of].directory),
                           ", with the same seed, options and weights: they count once"));
  }
  if (c.shown < c.metrics.size()) {
    lines.push_back(
        concat("not shown: ", counted(c.metrics.size() - c.shown, "other metric", "other metrics"),
               ", which finetune compare --csv has"));
  }
  for (const std::string& line : lines) {
    out += markdown ? concat("\n", markdown_escaped(line), "\n") : concat(line, "\n");
  }
  return out;
}

std::string comparison_csv(const RunComparison& c, const std::vector<RunRecord>& runs) {
  Cells header = c.options;
  header.insert(header.end(), {"runs", "seeds"});
  for (const std::string& metric : c.metrics) header.insert(header.end(), {metric, metric + "_sd"});
  header.insert(header.end(), {"difference", "interval_low", "interval_high", "more_than_noise"});
  std::string out;
  append_csv_row(header, out);
  for (const RunGroup& group : c.groups) {
    Cells row = group.values;
    row.push_back(concat(group.runs.size()));
    row.push_back(join(seeds_of(group, runs), " "));
    for (const std::string& metric : c.metrics) {
      const Estimate& estimate = group.metrics.at(metric);
      row.push_back(number_text(estimate.mean));
      row.push_back(estimate.runs > 1 ? number_text(estimate.sd) : "");
    }
    const auto& d = group.difference;
    row.push_back(d ? number_text(d->mean) : "");
    const bool known = d && d->low;
    row.push_back(known ? number_text(*d->low) : "");
    row.push_back(known ? number_text(*d->high) : "");
    row.push_back(known ? (d->more_than_noise ? "true" : "false") : "");
    append_csv_row(row, out);
  }
  return out;
}

std::string comparison_json(const RunComparison& c, const std::vector<RunRecord>& runs) {
  JsonArray groups, repeats;
  for (const RunGroup& group : c.groups) {
    JsonObject options, metrics;
    JsonArray directories, seeds;
    for (size_t i = 0; i < c.options.size(); ++i) options.add(c.options[i], group.values[i]);
    for (size_t run : group.runs) directories.add(runs[run].directory.string());
    for (const std::string& seed : seeds_of(group, runs)) seeds.add(parse_int(seed).value_or(0));
    for (const std::string& metric : c.metrics) {
      const Estimate& estimate = group.metrics.at(metric);
      JsonObject values{{"mean", estimate.mean}};
      if (estimate.runs > 1) values.add("sd", estimate.sd);
      metrics.add(metric, values);
    }
    JsonObject entry{
        {"options", options}, {"runs", directories}, {"seeds", seeds}, {"metrics", metrics}};
    if (group.difference) entry.add("difference", json_of(*group.difference));
    groups.add(entry);
  }
  for (const RepeatedRun& repeated : c.repeated) {
    repeats.add(JsonObject{{"run", runs[repeated.run].directory.string()},
                           {"of", runs[repeated.of].directory.string()}});
  }
  const JsonObject out{{"metric", c.deciding()}, {"larger_is_better", c.larger_is_better},
                       {"options", c.options},   {"best", c.best},
                       {"groups", groups},       {"repeated", repeats}};
  return printable_json(out.text()) + "\n";
}

}  // namespace finetune
