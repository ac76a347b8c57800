// Reads and writes config.toml, and lists how two configurations differ.
#include "train/options/config_file.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/printable.h"
#include "core/text/quoted_string.h"
#include "tasks/registry.h"
#include "train/options/config_parser.h"
#include "train/options/foreign/foreign_names.h"
#include "train/options/option_words.h"
#include "train/options/table/option_table.h"

namespace finetune {
namespace {

constexpr size_t kLongestValue = 200;  // in a message

// In TOML a float differs from an integer by its point or exponent.
std::string toml_double(double value) {
  std::string text = format_number(value);
  bool whole = std::isfinite(value) && text.find_first_of(".e") == std::string::npos;
  return whole ? text + ".0" : text;
}

struct ValueWriter {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return concat(value); }
  std::string operator()(double value) const { return toml_double(value); }
  std::string operator()(const std::string& value) const { return double_quoted(value); }
  std::string operator()(const std::vector<std::string>& values) const {
    std::vector<std::string> parts;
    for (const auto& value : values) parts.push_back(double_quoted(value));
    return concat("[", join(parts, ", "), "]");
  }
};

const ConfigEntry* find_entry(const std::vector<ConfigEntry>& entries, std::string_view name) {
  for (const auto& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

bool same_number(const std::string& a, const std::string& b) {
  const auto x = parse_double(a), y = parse_double(b);
  return a == b || (x && y && *x == *y);
}

// Values of numbers are compared as numbers. Columns '1' and '1.0' are different names.
bool same_entry(const ConfigEntry* a, const ConfigEntry* b) {
  if (!a || !b) return a == b;
  const OptionKind kind = kind_of_option(a->name);
  const bool is_number = kind == OptionKind::number || kind == OptionKind::whole_number;
  if (!is_number) return a->values == b->values;
  return std::equal(a->values.begin(), a->values.end(), b->values.begin(), b->values.end(),
                    same_number);
}

std::string shown(const ConfigEntry* entry) {
  if (!entry) return "not set";
  if (entry->values.empty()) return "none";
  return printable(join(entry->values, ", "), kLongestValue);
}

}  // namespace

std::vector<ConfigEntry> parse_config_text(std::string_view text, const std::string& file_name,
                                           ExitCode code) {
  ConfigParser parser(text, file_name, code);
  std::vector<ConfigEntry> entries = parser.parse_entries();
  if (!parser.at_end()) parser.fail("tables are not used here: write name = value lines only");
  return entries;
}

std::vector<ConfigEntry> read_config(const fs::path& path, ExitCode code) {
  return parse_config_text(read_text_input(path, code), path.string(), code);
}

void check_config_names(const std::vector<ConfigEntry>& entries,
                        const std::vector<std::string>& known, const std::string& file_name) {
  for (const auto& entry : entries) {
    if (std::find(known.begin(), known.end(), entry.name) != known.end()) continue;
    auto has = [&](std::string_view own) {
      return std::find(known.begin(), known.end(), own) != known.end();
    };
    const std::string value = entry.values.empty() ? "" : entry.values.front();
    if (const auto hint = foreign_option_hint("train", entry.name, value, has)) {
      throw usage_error(file_name, ":", entry.line, ": ", *hint);
    }
    auto near = closest_match(entry.name, known);
    throw usage_error(file_name, ":", entry.line, ": unknown option ", in_quotes(entry.name),
                      near ? concat(" (did you mean ", *near, "?)") : std::string());
  }
}

std::string write_config(const std::vector<ConfigItem>& items, std::string_view comment) {
  std::string text;
  if (!comment.empty()) text = concat("# ", comment, "\n");
  for (const auto& item : items) {
    text += concat(item.name, " = ", std::visit(ValueWriter(), item.value), "\n");
  }
  return text;
}

std::string first_value(const std::vector<ConfigEntry>& entries, std::string_view name) {
  const ConfigEntry* entry = find_entry(entries, name);
  return entry && !entry->values.empty() ? entry->values[0] : std::string();
}

void add_values_of_before(std::vector<ConfigEntry>& entries) {
  const auto value = [&](std::string_view name) { return first_value(entries, name); };
  const auto add = [&](const char* name, const char* before) {
    if (value(name).empty()) entries.push_back({.name = name, .values = {before}});
  };
  const bool is_split = parse_double(value("eval-fraction")).value_or(0) != 0;
  const std::optional<TaskKind> task = task_named(value("task"));
  const bool has_labels = !task || !is_foreign(find_train_option("ngram-mix")->info, *task);
  add("tensor-shards", "1");
  add("recipe", "hf");
  add("mask-probability", "0.15");
  add("no-whole-words", "false");
  add("distinct", "false");
  add("reinit", "false");
  add("extend-head", "false");
  add("drop-labels", "false");
  add("head-init", !has_labels ? "auto" : value("recipe") == kQuickWord ? "fit" : "random");
  add("pooling", "auto");
  add("no-label-names", "false");
  add("ngram-mix", has_labels ? "no" : "auto");
  add("eval-split", is_split ? "random" : "stratified");
  add("long-text", "cut");
  add("window-stride", "32");
  add("max-windows", "16");
  add("no-standardize", value("regression") == "true" ? "true" : "false");
}

std::vector<std::string> config_differences(const std::vector<ConfigEntry>& there,
                                            const std::vector<ConfigEntry>& now,
                                            const std::vector<std::string>& names) {
  std::vector<std::string> differences;
  for (const auto& name : names) {
    const ConfigEntry* a = find_entry(there, name);
    const ConfigEntry* b = find_entry(now, name);
    if (!same_entry(a, b)) {
      differences.push_back(concat(name, " (", shown(a), " there, ", shown(b), " now)"));
    }
  }
  return differences;
}

}  // namespace finetune
