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
// as "report_to=wandb" must also match `value`. An entry such as "--C" is matched only by `exact`.
std::string_view spelling_in(std::string_view names, std::string_view folded,
                             std::string_view value, std::string_view exact = "") {
  for (const std::string_view each : split(names, ' ')) {
    if (each.starts_with("--")) {
      if (each == exact) return each;
      continue;
    }
    const size_t equals = each.find('=');
    if (folded_name(each.substr(0, equals)) != folded) continue;
    if (equals == std::string_view::npos || each.substr(equals + 1) == value) {
      return each.substr(0, equals);
    }
  }
  return {};
}

std::string dashed(std::string_view name) {
  if (name.starts_with('-')) return std::string(name);
  return concat(name.size() == 1 ? "-" : "--", name);
}

// A name as given, in the forms that the tables are searched for.
struct SearchedName {
  std::string folded;      // without - and _, in lower case
  std::string_view exact;  // "--C": a letter with two dashes
  std::string_view value;
};

std::optional<std::string> hint_for(const SearchedName& name, std::string_view command,
                                    const std::function<bool(std::string_view own)>& has) {
  for (const ForeignName& row : foreign_option_names()) {
    const std::string_view spelling = spelling_in(row.names, name.folded, name.value, name.exact);
    if (spelling.empty()) continue;
    if (!row.commands.empty() && !has_word(row.commands, command)) continue;
    const std::string shown = name.exact.empty() ? dashed(spelling) : std::string(name.exact);
    if (row.own.empty()) return concat(shown, " ", row.rest);
    if (has(row.own)) return concat(shown, " is --", row.own, row.rest, " here");
  }
  for (const TrainOption& option : train_options()) {
    const std::string_view spelling = alias_of(option.info, name.folded, name.value, name.exact);
    if (spelling.empty() || !has(option.info.name)) continue;
    const std::string shown = name.exact.empty() ? dashed(spelling) : std::string(name.exact);
    return concat(shown, " is --", option.info.name, " here");
  }
  return std::nullopt;
}

}  // namespace

std::string_view alias_of(const OptionInfo& option, std::string_view folded, std::string_view value,
                          std::string_view exact) {
  return spelling_in(option.aliases, folded, value, exact);
}

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
  if (name.starts_with("--")) {  // a letter, which with one dash may mean something else
    if (auto hint = hint_for({"", name, value}, command, has)) return hint;
    return hint_for({folded_name(name), name, value}, command, has);
  }
  // "training.max_epochs" and "transformer.model.name", as spaCy has them.
  const size_t last = name.rfind('.');
  if (last != std::string_view::npos && last > 0) {
    const size_t before = name.rfind('.', last - 1) + 1;
    if (auto hint = hint_for(
            {folded_name(concat(name.substr(before, last - before), name.substr(last + 1))), "",
             value},
            command, has)) {
      return hint;
    }
  }
  return hint_for({folded_name(name.substr(last + 1)), "", value}, command, has);
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
