// Shows the rows whose label may be wrong, from the file that check --label-errors wrote.
#include <algorithm>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/log.h"
#include "core/text/printable.h"
#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "data/rows/records.h"
#include "experiments/report/page/html.h"
#include "experiments/report/sections.h"

namespace finetune {
namespace {

constexpr int64_t kMostRows = 100;
constexpr size_t kMostTextBytes = 500, kMostLabelBytes = 200;

bool is_trained_on(const fs::path& name, const std::vector<RunRecord>& runs) {
  return std::any_of(runs.begin(), runs.end(), [&](const RunRecord& run) {
    return std::any_of(run.train_files.begin(), run.train_files.end(),
                       [&](const fs::path& file) { return file.filename() == name; });
  });
}

}  // namespace

std::string label_errors_html(const std::filesystem::path& file,
                              const std::vector<RunRecord>& runs) {
  RowReader reader(file);
  const auto column = [&](const char* name) {
    if (reader.has_column(name)) return reader.column(name);
    throw data_error(printable_path(file), ": has no column '", name,
                     "'; a file that finetune check --label-errors wrote is needed");
  };
  const size_t source = column("file"), line = column("line"), text = column("text"),
               label = column("label"), likely = column("likely_label"),
               confident = column("confident"), reason = column("reason");
  const std::string title = "Labels that may be wrong";
  HtmlTable shown(title, {"line", "text", "label", "likely", "reason"}, true);
  int64_t sure = 0, others = 0;
  std::string foreign;  // a file that no run was trained on
  for (Row row; reader.next(row);) {
    const bool is_sure = row.values[confident] == "yes";
    if (!is_sure && row.values[confident] != "no") {
      throw data_error(reader.where(row), ": confident is ", in_quotes(row.values[confident]),
                       ", not yes or no");
    }
    ++(is_sure ? sure : others);
    const fs::path name = fs::path(row.values[source]).filename();
    if (!is_trained_on(name, runs)) foreign = name.string();
    if (shown.rows() == kMostRows) continue;
    shown.name(concat(name.string(), ":", row.values[line]));
    shown.text(row.values[text], kMostTextBytes).text(row.values[label], kMostLabelBytes);
    shown.text(row.values[likely], kMostLabelBytes).text(row.values[reason], kMostTextBytes);
    shown.end_row();
  }
  if (!foreign.empty()) {
    warn(printable_path(file), ": has rows of ", printable(foreign),
         ", which is not a training file of these runs");
  }
  shown.note(concat(
      sure == 1 ? "1 row" : with_thousands(double(sure)) + " rows", " may have a wrong label; for ",
      with_thousands(double(others)), " more another label is likelier, but not surely.",
      shown.rows() < sure + others ? concat(" The first ", kMostRows, " are shown.") : ""));
  return concat("<section>\n<h2>", title, "</h2>\n",
                sure + others == 0 ? "<p>No label looks wrong.</p>\n" : shown.region(true),
                "</section>\n");
}

}  // namespace finetune
