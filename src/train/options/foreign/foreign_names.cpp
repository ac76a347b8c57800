// Looks other programs' names up.
#include "train/options/foreign/foreign_names.h"

#include <algorithm>

#include "core/text/text.h"
#include "train/options/table/option_table.h"

namespace finetune {
namespace {

bool has_word(std::string_view words, std::string_view word) {
  const auto all = split(words, ' ');
  return std::find(all.begin(), all.end(), word) != all.end();
}

// Returns the entry of `names` that equals `folded` apart from case, - and _, or "". An entry such
// as "report_to=wandb" must also match `value`.
std::string_view spelling_in(std::string_view names, std::string_view folded,
                             std::string_view value) {
  for (const std::string_view each : split(names, ' ')) {
    const size_t equals = each.find('=');
    if (folded_name(each.substr(0, equals)) != folded) continue;
    if (equals == std::string_view::npos || each.substr(equals + 1) == value) {
      return each.substr(0, equals);
    }
  }
  return {};
}

std::string dashed(std::string_view name) {
  return concat(name.size() == 1 ? "-" : "--", name);
}

}  // namespace

std::string folded_name(std::string_view name) {
  std::string folded;
  for (const char c : name) {
    if (c == '-' || c == '_') continue;
    folded += c >= 'A' && c <= 'Z' ? char(c + 32) : c;
  }
  return folded;
}

std::optional<std::string> foreign_option_hint(
    std::string_view command, std::string_view name, std::string_view value,
    const std::function<bool(std::string_view own)>& has) {
  // "paths.train" and "training.max_epochs", as spaCy has them.
  const std::string folded = folded_name(name.substr(name.rfind('.') + 1));
  for (const ForeignName& row : foreign_option_names()) {
    const std::string_view spelling = spelling_in(row.names, folded, value);
    if (spelling.empty()) continue;
    if (!row.commands.empty() && !has_word(row.commands, command)) continue;
    const std::string shown = dashed(spelling);
    if (row.own.empty()) return concat(shown, " ", row.rest);
    if (has(row.own)) return concat(shown, " is --", row.own, row.rest, " here");
  }
  for (const TrainOption& option : train_options()) {
    const std::string_view spelling = spelling_in(option.info.aliases, folded, value);
    if (spelling.empty() || !has(option.info.name)) continue;
    return concat(dashed(spelling), " is --", option.info.name, " here");
  }
  return std::nullopt;
}

std::optional<std::string> foreign_command_hint(std::string_view name) {
  const std::string folded = folded_name(name);
  for (const ForeignName& row : foreign_command_names()) {
    if (spelling_in(row.names, folded, "").empty()) continue;
    if (row.own.empty()) return concat(in_quotes(name), " ", row.rest);
    return concat(in_quotes(name), " is finetune ", row.own, row.rest, " here");
  }
  return std::nullopt;
}

}  // namespace finetune
