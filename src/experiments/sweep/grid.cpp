// Expands a grid: sets each run's options, names it, and checks it as train would.
#include "experiments/sweep/grid.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/numeric/philox.h"
#include "core/sha256.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "train/options/option_words.h"
#include "weights/hub_cache.h"

namespace finetune {
namespace {

constexpr size_t kMostRuns = 10000;
constexpr size_t kLongestValue = 60, kLongestName = 200;  // bytes, in a run's name
// Limits draws without a new value. If values are about equally likely, one comes much sooner.
constexpr size_t kLeastTries = 1000, kTriesOfAValue = 100;

using Words = std::vector<std::string>;

// A dimension of the grid: options that take their values together.
struct GridAxis {
  std::vector<size_t> options;             // places in GridFile::swept
  std::vector<std::vector<Words>> points;  // one value per option for each point
};

Error at(const GridFile& file, const SweptOption& option, const std::string& fault) {
  return usage_error(file.name, ":", option.line, ": ", option.name, ": ", fault);
}

// Returns one spelling for equal values, so that 0.0001 and 1e-4 are the same run.
std::string spelled(OptionKind kind, const Words& words) {
  Words out;
  for (const std::string& word : words) out.push_back(spelled_value(kind, word));
  return join(out, ",");
}

std::string escaped(const std::string& value) {
  constexpr std::string_view kPlain = "._+-@:";
  constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte < 128 && std::isalnum(byte)) || kPlain.find(c) != kPlain.npos;
    out += plain ? std::string(1, c) : concat('%', digits[byte >> 4], digits[byte & 15]);
  }
  if (out.size() <= kLongestValue) return out;
  return concat(out.substr(0, kLongestValue - 13), "~", sha256_of(value).substr(0, 12));
}

std::vector<GridAxis> axes_of(const GridFile& file) {
  std::vector<GridAxis> axes;
  std::optional<size_t> joint;
  for (size_t i = 0; i < file.swept.size(); ++i) {
    const SweptOption& option = file.swept[i];
    if (option.range && !option.range->draws) {  // drawn together with others
      if (joint) {
        axes[*joint].options.push_back(i);
        continue;
      }
      joint = axes.size();
    }
    axes.push_back({{i}, {}});
    for (const Words& value : option.values) axes.back().points.push_back({value});
  }
  return axes;
}

// Checks that the range contains whole numbers, and only ones that a double has exactly.
void require_whole_numbers(const GridFile& file, const SweptOption& option) {
  constexpr double kMost = 0x1p53;
  const SweptRange& range = *option.range;
  if (std::ceil(range.least) > std::floor(range.most)) {
    throw at(file, option,
             concat("no whole number lies between ", range.least, " and ", range.most));
  }
  if (range.least < -kMost || range.most > kMost) {
    throw at(
        file, option,
        concat("a range of whole numbers ends at 2^53; it is ", range.least, " to ", range.most));
  }
}

void draw(const GridFile& file, GridAxis& axis) {
  const SweptOption& first = file.swept[axis.options.front()];
  const int64_t count = first.range->draws.value_or(file.draws.value_or(0));
  for (size_t place : axis.options) {
    const SweptOption& option = file.swept[place];
    if (kind_of_option(option.name) == OptionKind::whole_number) {
      require_whole_numbers(file, option);
    }
  }
  std::set<std::vector<Words>> seen;
  size_t tries = 0;
  for (uint32_t number = 0; int64_t(axis.points.size()) < count; ++number) {
    if (++tries > kLeastTries + kTriesOfAValue * axis.points.size()) {
      throw at(file, first,
               concat("its range has only ", counted(axis.points.size(), "value"), " for ",
                      counted(count, "draw")));
    }
    std::vector<Words> point;
    for (size_t place : axis.options) {
      const SweptOption& option = file.swept[place];
      const OptionKind kind = kind_of_option(option.name);
      if (kind != OptionKind::number && kind != OptionKind::whole_number) {
        throw at(file, option, "is not a number: give a list of values in place of a range");
      }
      point.push_back({drawn_value(option.name, *option.range, kind == OptionKind::whole_number,
                                   option.range->seed.value_or(file.draw_seed), number)});
    }
    if (!seen.insert(point).second) continue;
    axis.points.push_back(std::move(point));
    tries = 0;
  }
}

// Checks each value by itself, so that an error names its line.
void check_values(const GridFile& file, const GridAxis& axis) {
  for (size_t o = 0; o < axis.options.size(); ++o) {
    const SweptOption& option = file.swept[axis.options[o]];
    const OptionKind kind = kind_of_option(option.name);
    std::set<std::string> seen;
    for (const auto& point : axis.points) {
      TrainOptions scratch;
      const std::string fault = set_option(scratch, option.name, point[o]);
      if (!fault.empty()) throw at(file, option, fault);
      if (!option.range && !seen.insert(spelled(kind, point[o])).second) {
        throw at(file, option, concat(in_quotes(join(point[o], ", ")), " occurs twice"));
      }
    }
  }
}

TrainOptions fixed_options(const GridFile& file, const std::string& output) {
  TrainOptions options;
  for (const ConfigEntry& entry : file.fixed) {
    if (entry.values.empty()) continue;
    const std::string fault = set_option(options, entry.name, entry.values);
    if (!fault.empty()) {
      throw usage_error(file.name, ":", entry.line, ": ", entry.name, ": ", fault);
    }
  }
  if (!output.empty()) options.output = output;
  if (options.output.empty()) {
    throw usage_error("--output is required: the directory of the sweep (or output = in ",
                      file.name, ")");
  }
  return options;
}

// Returns the run whose value on axis a is its point places[a].
SweepRun run_at(const GridFile& file, const Grid& grid, const std::vector<GridAxis>& axes,
                const std::vector<size_t>& places) {
  std::vector<const Words*> words(file.swept.size());
  for (size_t a = 0; a < axes.size(); ++a) {
    for (size_t o = 0; o < axes[a].options.size(); ++o) {
      words[axes[a].options[o]] = &axes[a].points[places[a]][o];
    }
  }
  SweepRun run;
  run.options = grid.fixed;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& name = file.swept[i].name;
    const std::string value = spelled(kind_of_option(name), *words[i]);
    FINETUNE_CHECK(set_option(run.options, name, *words[i]).empty());
    run.values.push_back(value);
    run.name += concat(i == 0 ? "" : ",", name, "=", escaped(value));
  }
  if (run.name.size() > kLongestName) {
    run.name = concat(run.name.substr(0, kLongestName - 13), "~",
                      sha256_of(join(run.values, "\n")).substr(0, 12));
  }
  run.options.model = model_path(run.options.model);
  run.options.output = concat(grid.fixed.output, "/", run.name);
  try {
    validate(run.options);
  } catch (const Error& error) {
    throw Error(error.code(), concat(file.name, ": run ", run.name, ": ", error.what()));
  }
  return run;
}

}  // namespace

Grid expand_grid(const GridFile& file, const std::string& output) {
  Grid grid;
  grid.file = file.name;
  grid.fixed = fixed_options(file, output);
  for (const SweptOption& option : file.swept) grid.options.push_back(option.name);
  std::vector<GridAxis> axes = axes_of(file);
  size_t count = 1;
  for (GridAxis& axis : axes) {
    if (axis.points.empty()) draw(file, axis);
    check_values(file, axis);
    count *= axis.points.size();
    if (count > kMostRuns) {
      throw usage_error(file.name, ": more than ", kMostRuns, " runs; make a list shorter");
    }
  }
  std::vector<size_t> places(axes.size());
  for (size_t r = 0; r < count; ++r) {
    size_t rest = r;
    for (size_t a = axes.size(); a-- > 0;) {
      places[a] = rest % axes[a].points.size();
      rest /= axes[a].points.size();
    }
    grid.runs.push_back(run_at(file, grid, axes, places));
  }
  return grid;
}

namespace {

constexpr int kDigits = 3;  // significant digits of a drawn number

// FNV-1a, the same everywhere.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  return hash;
}

// Rounds to kDigits significant digits, through the decimal form.
double rounded(double value) {
  if (value == 0) return 0;
  const int exponent = int(std::floor(std::log10(std::abs(value))));
  const int places = kDigits - 1 - exponent;
  if (places < 0) return std::round(value / std::pow(10.0, -places)) * std::pow(10.0, -places);
  return parse_double(format_fixed(value, places)).value();
}

}  // namespace

std::string drawn_value(const std::string& option, const SweptRange& range, bool whole,
                        uint64_t seed, uint32_t number) {
  const PhiloxKey key = derive_key(seed ^ hash_of(option), uint32_t(RandomUse::sweep_draw));
  const double u = unit_interval(philox(key, {number, 0, 0, 0})[0]);
  const double least = whole ? std::ceil(range.least) : range.least;
  const double most = whole ? std::floor(range.most) : range.most;
  if (whole) {
    const double end = most + 1;  // each whole number has the interval up to the next one
    const double at = range.log ? std::exp(std::log(least) + u * (std::log(end) - std::log(least)))
                                : least + u * (end - least);
    return concat(int64_t(std::clamp(std::floor(at), least, most)));
  }
  const double at = range.log ? std::exp(std::log(least) + u * (std::log(most) - std::log(least)))
                              : least + u * (most - least);
  return number_word(std::clamp(rounded(at), least, most));
}

}  // namespace finetune
