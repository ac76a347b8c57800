// Recognises names of hyperparameter searches and writes their values as TOML.
#include "cli/grid_line.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/text/text.h"
#include "train/options/foreign/foreign_names.h"
#include "train/options/option_words.h"
#include "train/options/table/option_table.h"

namespace finetune {
namespace {

constexpr int64_t kMostSeeds = 20;
constexpr std::string_view kRange = "lr = { min = 1e-5, max = 1e-4, log = true }";

template <size_t N>
bool is_one_of(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Returns the option of train that has this name, here or in another program.
const TrainOption* option_meant(std::string_view name) {
  const std::string folded = folded_name(name);
  if (folded.size() < 2) return nullptr;
  for (const TrainOption& option : train_options()) {
    if (folded_name(option.info.name) == folded) return &option;
  }
  for (const TrainOption& option : train_options()) {
    if (!alias_of(option.info, folded).empty()) return &option;
  }
  return nullptr;
}

// "[1,2]" and "1,2" are two values; blanks around a value are removed.
std::vector<std::string_view> values_in(std::string_view text) {
  text = trim(text);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  std::vector<std::string_view> values = split(text, ',');
  for (std::string_view& value : values) value = trim(value);
  std::erase(values, std::string_view());
  return values;
}

std::string toml_value(std::string_view value, OptionKind kind) {
  const bool is_number = parse_double(std::string(value)).has_value();
  const bool is_plain = kind != OptionKind::text && kind != OptionKind::list && is_number;
  return is_plain || value == "true" || value == "false" ? std::string(value)
                                                         : concat('"', value, '"');
}

// "lr = [1, 2] under [sweep] in GRID", or "lr = 1 in GRID, above [sweep]" for one value.
std::string line_of(std::string_view name, std::string_view text) {
  const OptionKind kind = kind_of_option(name);
  if (kind == OptionKind::flag && text.empty())
    return concat(name, " = true in GRID, above [sweep]");
  std::vector<std::string> values;
  for (std::string_view value : values_in(text)) values.push_back(toml_value(value, kind));
  if (values.empty()) return concat(name, " = [VALUE, VALUE] under [sweep] in GRID");
  if (values.size() == 1) return concat(name, " = ", values[0], " in GRID, above [sweep]");
  const std::string list = concat("[", join(values, ", "), "]");
  return concat(name, " = ", list, " under [sweep] in GRID");
}

std::string seeds_line(std::string_view text) {
  const auto count = parse_int(std::string(text));
  if (!count || *count < 2 || *count > kMostSeeds) {
    return line_of("seed", values_in(text).size() > 1 ? text : "1,2,3");
  }
  std::vector<std::string> seeds;
  for (int64_t seed = 1; seed <= *count; ++seed) seeds.push_back(concat(seed));
  return line_of("seed", join(seeds, ","));
}

std::string draws_line(std::string_view text) {
  const auto count = parse_int(std::string(text));
  return concat("draws = ", count && *count > 0 ? *count : 20, " and ranges such as ", kRange,
                " under [sweep] in GRID");
}

// The text is "lr=1,2", or "lr" alone.
std::string param_line(std::string_view text) {
  const size_t end = text.find_first_of("=: ");
  const std::string_view values = end == text.npos ? "" : text.substr(end + 1);
  if (const TrainOption* option = option_meant(text.substr(0, end))) {
    return line_of(option->info.name, values);
  }
  const std::vector<std::string_view> given = values_in(values);
  const std::string shown =
      given.empty() ? "VALUE, VALUE" : join({given.begin(), given.end()}, ", ");
  return concat("OPTION = [", shown, "] under [sweep] in GRID, OPTION being one of train's");
}

std::optional<std::string> search_line(std::string_view name, std::string_view value) {
  constexpr std::string_view seeds[] = {"seeds", "nseeds", "numseeds", "seedlist"};
  constexpr std::string_view draws[] = {"ntrials", "trials",  "numtrials", "maxtrials",
                                        "nruns",   "numruns", "maxevals"};
  constexpr std::string_view params[] = {
      "param",   "hparam", "hyperparameter", "parameter",  "paramgrid", "hparams",
      "hpspace", "sweep",  "parameters",     "searchover", "vary"};
  const std::string folded = folded_name(name);
  if (is_one_of(folded, seeds)) return seeds_line(value);
  if (is_one_of(folded, draws)) return draws_line(value);
  if (is_one_of(folded, params)) return param_line(value);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> grid_line_for_values(std::string_view option, std::string_view value) {
  const TrainOption* found = find_train_option(option);
  if (!found || values_in(value).size() < 2) return std::nullopt;
  const OptionKind kind = kind_of_option(option);
  const bool takes_commas =
      kind == OptionKind::list || (kind == OptionKind::text && found->info.words.empty());
  if (takes_commas) return std::nullopt;
  return concat(line_of(option, value), "; finetune sweep GRID tries them all");
}

std::optional<std::string> grid_hint(std::string_view command, std::string_view name,
                                     std::string_view value) {
  const bool is_sweep = command == "sweep";
  if (!is_sweep && command != "train") return std::nullopt;
  const auto answer = [&](const std::string& line) {
    return concat("--", name, is_sweep ? " is not an option of sweep" : " is not an option here",
                  ": write ", line, is_sweep ? "" : "; finetune sweep GRID tries them all");
  };
  if (const auto line = search_line(name, value)) return answer(*line);
  if (!is_sweep) return std::nullopt;
  constexpr std::string_view draws[] = {"niter", "numsamples", "nsamples"};
  if (is_one_of(folded_name(name), draws)) return answer(draws_line(value));
  const TrainOption* option = option_meant(name);
  return option ? std::optional(answer(line_of(option->info.name, value))) : std::nullopt;
}

}  // namespace finetune
