// Parses a grid's file: fixed options as config.toml has them, then lists and ranges.
#include "experiments/sweep/grid_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/files/files.h"
#include "train/options/config_parser.h"
#include "train/options/option_values.h"

namespace finetune {
namespace {

constexpr int64_t kMostDraws = 10000;
constexpr std::string_view kForm =
    ": write a list, [1, 2], or a range, { min = 1e-5, max = 1e-3, log = true, draws = 8 }";
constexpr std::string_view kNoJunit =
    "junit: runs would write over each other's file; leave it out, evaluate --junit writes one of "
    "a run";
constexpr std::array<std::string_view, 7> kOfTheSweep{"output", "resume",      "overwrite", "json",
                                                      "quiet",  "no-progress", "time-limit"};

class GridParser {
 public:
  GridParser(std::string_view text, const std::string& file) : in_(text, file, ExitCode::usage) {
    grid_.name = file;
  }

  GridFile parse() {
    grid_.fixed = in_.parse_entries();
    if (in_.at_end()) in_.fail("there is no table [sweep] with the options to vary");
    table_header();
    for (in_.skip_lines(); !in_.at_end(); in_.skip_lines()) {
      if (in_.peek() == '[') in_.fail("a second table: [sweep] is the only one");
      entry();
    }
    if (grid_.swept.empty()) in_.fail("[sweep] names no option to vary");
    return std::move(grid_);
  }

 private:
  void table_header() {
    in_.take();
    in_.skip_blanks();
    const std::string name = in_.parse_name();
    in_.skip_blanks();
    if (name != "sweep" || in_.peek() != ']') {
      in_.fail("the table ", in_quotes(name), " is unknown: [sweep] is the only one");
    }
    in_.take();
    in_.end_entry("[sweep]");
  }

  void entry() {
    SweptOption option;
    option.line = in_.line();
    option.name = in_.parse_name_of_entry();
    const auto [earlier, is_new] = lines_.emplace(option.name, option.line);
    if (!is_new) {
      in_.fail("option ", in_quotes(option.name), " occurs twice (first in line ", earlier->second,
               ")");
    }
    if (lines_.size() > kMostOptions) in_.fail("more entries than there are options");
    if (option.name == "draws") {
      grid_.draws = count(option.name);
    } else if (option.name == "draw-seed") {
      grid_.draw_seed = seed(option.name);
    } else {
      value_of(option);
    }
    in_.end_entry(option.name);
    if (option.range || !option.values.empty()) grid_.swept.push_back(std::move(option));
  }

  void value_of(SweptOption& option) {
    if (in_.peek() == '[')
      list(option);
    else if (in_.peek() == '{')
      option.range = range(option.name);
    else
      in_.fail(option.name, kForm);
  }

  void list(SweptOption& option) {
    in_.take();
    for (;;) {
      in_.skip_lines();
      if (in_.at_end()) in_.fail("an array is not closed: ']' is missing");
      if (in_.peek() == ']') break;
      std::vector<std::string>& words = option.values.emplace_back();
      if (in_.peek() == '[') {
        in_.parse_array(words);
        if (words.empty()) in_.fail(option.name, ": a value is an empty list");
      } else {
        words.push_back(in_.parse_scalar());
      }
      in_.skip_lines();
      if (in_.peek() == ',')
        in_.take();
      else if (in_.peek() != ']')
        in_.fail("',' or ']' is missing in an array");
    }
    in_.take();
    if (option.values.empty()) in_.fail(option.name, ": its list is empty; give it a value");
  }

  SweptRange range(const std::string& option) {
    in_.take();
    SweptRange range;
    std::optional<double> least, most;
    std::set<std::string> names;
    for (bool first = true;; first = false) {
      in_.skip_blanks();
      if (in_.peek() == '}') break;
      if (!first && in_.peek() != ',') in_.fail(option, ": ',' or '}' is missing in a range");
      if (!first) in_.take();
      in_.skip_blanks();
      const std::string name = in_.parse_name_of_entry();
      if (!names.insert(name).second) {
        in_.fail(option, ": ", in_quotes(name), " occurs twice in its range");
      }
      if (name == "min")
        least = number(name);
      else if (name == "max")
        most = number(name);
      else if (name == "log")
        range.log = flag(name);
      else if (name == "draws")
        range.draws = count(name);
      else if (name == "seed")
        range.seed = seed(name);
      else
        in_.fail(option, ": a range has no ", in_quotes(name),
                 "; it has min, max, log, draws and seed");
    }
    in_.take();
    if (!least || !most) in_.fail(option, ": a range needs min and max", kForm);
    range.least = *least;
    range.most = *most;
    if (!(range.least < range.most)) {
      in_.fail(option, ": min ", range.least, " is not below max ", range.most);
    }
    if (!std::isfinite(range.most - range.least)) {
      in_.fail(option, ": the range from ", range.least, " to ", range.most, " is too wide");
    }
    if (range.log && range.least <= 0) {
      in_.fail(option, ": min ", range.least, " has no logarithm; it must be above 0");
    }
    return range;
  }

  double number(const std::string& name) {
    const std::string word = in_.parse_scalar();
    const auto value = parse_double(word);
    if (!value || !std::isfinite(*value)) in_.fail(name, ": ", in_quotes(word), " is not a number");
    return *value;
  }
  bool flag(const std::string& name) {
    const std::string word = in_.parse_scalar();
    if (word != "true" && word != "false") {
      in_.fail(name, ": ", in_quotes(word), " is neither true nor false");
    }
    return word == "true";
  }
  int64_t whole(const std::string& name, int64_t least, int64_t most) {
    const std::string word = in_.parse_scalar();
    const auto value = parse_int(word);
    if (value && *value >= least && *value <= most) return *value;
    in_.fail(name, ": ", in_quotes(word), " is not a whole number from ", least, " to ", most);
  }
  int64_t count(const std::string& name) { return whole(name, 1, kMostDraws); }
  uint64_t seed(const std::string& name) { return uint64_t(whole(name, 0, INT64_MAX)); }

  ConfigParser in_;
  GridFile grid_;
  std::map<std::string, int> lines_;  // of the names in [sweep]
};

Error at(const GridFile& grid, int line, const std::string& message) {
  return usage_error(grid.name, ":", line, ": ", message);
}

void check_names(const GridFile& grid) {
  check_config_names(grid.fixed, all_option_names(), grid.name);
  std::vector<ConfigEntry> swept;
  for (const SweptOption& option : grid.swept)
    swept.push_back({option.name, {}, true, option.line});
  check_config_names(swept, all_option_names(), grid.name);
  const std::vector<std::string> lists = list_option_names();
  auto is_list = [&](const std::string& name) {
    return std::find(lists.begin(), lists.end(), name) != lists.end();
  };
  for (const ConfigEntry& entry : grid.fixed) {
    if (entry.name == "resume" || entry.name == "overwrite") {
      throw at(grid, entry.line,
               concat(entry.name, ": a sweep goes on by itself where it is; leave it out"));
    }
    if (entry.name == "junit") throw at(grid, entry.line, std::string(kNoJunit));
    if (!entry.is_array || is_list(entry.name)) continue;
    throw at(grid, entry.line,
             concat(entry.name, " takes one value, not an array; several to try go into [sweep]"));
  }
  for (const SweptOption& option : grid.swept) {
    if (std::find(kOfTheSweep.begin(), kOfTheSweep.end(), option.name) != kOfTheSweep.end()) {
      throw at(grid, option.line,
               concat(option.name, " is the whole sweep's and cannot differ between its runs"));
    }
    if (option.name == "junit") throw at(grid, option.line, std::string(kNoJunit));
    for (const ConfigEntry& entry : grid.fixed) {
      if (entry.name != option.name) continue;
      throw at(grid, option.line,
               concat(option.name, " is set in line ", entry.line, " already; leave one out"));
    }
    for (const auto& words : option.values) {
      if (words.size() < 2 || is_list(option.name)) continue;
      throw at(grid, option.line,
               concat(option.name, ": a value is a list, and it takes one word"));
    }
  }
}

void check_draws(const GridFile& grid) {
  bool joint = false;
  for (const SweptOption& option : grid.swept) {
    if (!option.range || option.range->draws) continue;
    joint = true;
    if (!grid.draws) {
      throw at(
          grid, option.line,
          concat(option.name, ": say how many values are drawn: draws = 8 in the range, or in ",
                 "[sweep] for all ranges together"));
    }
    if (option.range->seed) {
      throw at(grid, option.line,
               concat(option.name, ": seed needs draws in the same range; draw-seed in [sweep] is ",
                      "that of ranges that are drawn together"));
    }
  }
  if (grid.draws && !joint) {
    throw usage_error(grid.name,
                      ": draws in [sweep] is for ranges that have no draws of their own,",
                      " and there is none");
  }
}

}  // namespace

GridFile parse_grid(std::string_view text, const std::string& file_name) {
  GridFile grid = GridParser(text, file_name).parse();
  check_names(grid);
  check_draws(grid);
  return grid;
}

GridFile read_grid(const fs::path& path) {
  return parse_grid(read_text_input(path, ExitCode::usage), path.string());
}

}  // namespace finetune
