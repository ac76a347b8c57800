// Rows whose label is probably wrong, as check --label-errors has written them.
#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/text/counted.h"
#include "data/rows/records.h"
#include "experiments/report/page/html.h"
#include "experiments/report/sections.h"

namespace finetune {
namespace {

constexpr int64_t kMostRows = 100;
constexpr size_t kMostTextBytes = 500, kMostLabelBytes = 200;

}  // namespace

std::string label_errors_html(const std::filesystem::path& file) {
  RowReader reader(file);
  const auto column = [&](const char* name) {
    if (reader.has_column(name)) return reader.column(name);
    throw data_error(printable_path(file), ": has no column '", name,
                     "'; a file that finetune check --label-errors wrote is needed");
  };
  const size_t source = column("file"), line = column("line"), text = column("text"),
               label = column("label"), likely = column("likely_label"),
               confident = column("confident"), reason = column("reason");
  const std::string title = "Labels that are probably wrong";
  HtmlTable shown(title, {"row", "text", "label", "likely", "reason"}, true);
  int64_t sure = 0, others = 0;
  for (Row row; reader.next(row);) {
    ++(row.values[confident] == "yes" ? sure : others);
    if (shown.rows() == kMostRows) continue;
    const fs::path name = fs::path(row.values[source]).filename();
    shown.name(concat(name.string(), ":", row.values[line]));
    shown.text(row.values[text], kMostTextBytes).text(row.values[label], kMostLabelBytes);
    shown.text(row.values[likely], kMostLabelBytes).text(row.values[reason], kMostTextBytes);
    shown.end_row();
  }
  shown.note(
      concat(counted(sure, "row probably has", "rows probably have"), " a wrong label; for ",
             others, " more another label is likelier, but not surely.",
             shown.rows() < sure + others ? concat(" The first ", kMostRows, " are shown.") : ""));
  return concat("<section>\n<h2>", title, "</h2>\n",
                sure + others == 0 ? "<p>No label looks wrong.</p>\n" : shown.region(true),
                "</section>\n");
}

}  // namespace finetune
