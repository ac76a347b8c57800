// Escapes text and writes tables and figures.
#include "experiments/report/html.h"

#include "core/text/text.h"
#include "experiments/report/canvas.h"
#include "train/run/metrics_files.h"

namespace finetune {

HtmlTable::HtmlTable(std::string_view caption, const std::vector<std::string>& header) {
  html_ = concat("<table>\n<caption>", markup_escaped(caption), "</caption>\n<thead><tr>");
  for (const std::string& name : header) {
    html_ += concat("<th scope=\"col\">", markup_escaped(name, 200), "</th>");
  }
  html_ += "</tr></thead>\n<tbody>\n";
}

HtmlTable& HtmlTable::cell(const std::string& content) {
  if (!in_row_) html_ += "<tr>";
  in_row_ = true;
  html_ += content;
  html_ += "</td>";
  return *this;
}

// Text of any writing direction does not disturb what stands beside it.
HtmlTable& HtmlTable::text(std::string_view text, size_t limit) {
  return cell(concat("<td dir=\"auto\">", markup_escaped(text, limit)));
}

HtmlTable& HtmlTable::number(double value) {
  return cell(concat("<td class=\"n\">", report_number(value)));
}

HtmlTable& HtmlTable::exact(double value) {
  return cell(concat("<td class=\"n\">", number_text(value)));
}

void HtmlTable::end_row() {
  html_ += "</tr>\n";
  in_row_ = false;
  ++rows_;
}

void HtmlTable::note(std::string_view text) {
  note_ = concat("<p class=\"note\">", markup_escaped(text), "</p>\n");
}

std::string HtmlTable::html() const {
  return concat(html_, "</tbody>\n</table>\n", note_);
}

std::string figure_html(const Picture& picture, const HtmlTable& table) {
  const std::string title = markup_escaped(picture.title);
  std::string out = concat("<figure", picture.own_width ? " class=\"wide\"" : "", ">\n<figcaption>",
                           title, "</figcaption>\n");
  if (picture.own_width) {
    out +=
        concat("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", title, "\">");
  }
  const std::string width = report_number(picture.width), height = report_number(picture.height);
  out += concat("<svg role=\"img\" viewBox=\"0 0 ", width, " ", height, "\"",
                picture.own_width ? concat(" width=\"", width, "\" height=\"", height, "\"") : "",
                ">\n<title>", title, "</title>\n<desc>", markup_escaped(picture.description),
                "</desc>\n", picture.svg, "</svg>\n");
  if (picture.own_width) out += "</div>\n";
  if (!picture.note.empty()) {
    out += concat("<p class=\"note\">", markup_escaped(picture.note), "</p>\n");
  }
  return concat(out,
                "<details><summary>The numbers</summary>\n<div class=\"scroll\" tabindex=\"0\" ",
                "role=\"region\" aria-label=\"The numbers of: ", title, "\">\n", table.html(),
                "</div></details>\n</figure>\n");
}

}  // namespace finetune
