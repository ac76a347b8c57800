// A row of the table of options: name, help, range or words, commands, tasks, and where its value
// is stored. The command line, config.toml, --help, completion and the manual are read from it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace finetune {

enum class TaskKind;

// How an option takes part in a run.
enum class OptionRole {
  result,   // changes the last step's weights or which step is exported: the same on --resume
  run,      // kept in config.toml, may differ on --resume
  session,  // only this call: not kept (--resume, --overwrite)
};

// Sets of commands, combined with '|'.
using Commands = uint32_t;
namespace commands {
inline constexpr Commands train = 1, adapt = 2, plan = 4, check = 8, evaluate = 16, predict = 32,
                          tokenize = 64, doctor = 128, bench_layout = 256, next = 512;
inline constexpr Commands runs = train | adapt | plan, answers = evaluate | predict | next,
                          all = ~Commands{0};
}  // namespace commands

// Sets of tasks, combined with '|'.
using Tasks = uint32_t;
constexpr Tasks only(TaskKind kind) {
  return Tasks{1} << int(kind);
}

// The numbers that are allowed: from `least` to `most`, both included unless said otherwise.
struct OptionRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false, below_most = false;  // that end is excluded
  bool as_float = false;                         // compared in single precision
};
constexpr OptionRange at_least(double least) {
  return {.least = least};
}
constexpr OptionRange between(double least, double most) {
  return {.least = least, .most = most};
}
constexpr OptionRange above(double least, double most) {
  return {.least = least, .most = most, .above_least = true};
}
constexpr OptionRange below(double most) {  // and at least 0
  return {.least = 0, .most = most, .below_most = true};
}
constexpr OptionRange kPositiveFloat{.least = 0, .above_least = true, .as_float = true};

// Another help text, and another name, that an option has in some commands.
struct OptionWording {
  Commands commands = 0;
  std::string_view help = {};
  std::string_view name = {};
};

struct OptionInfo {
  std::string_view name = {};   // without dashes
  std::string_view group = {};  // heading in --help
  OptionRole role = OptionRole::result;
  Tasks tasks = 0;                     // the only tasks it is for; 0: all
  Commands commands = commands::runs;  // that show it; config.toml has every option of train
  Commands required = 0;               // commands that need it
  Commands common = 0;                 // whose short --help shows it
  bool is_argument = false;            // the value stands alone, without the option's name
  bool is_model = false;               // an id in the Hugging Face cache is allowed, too
  bool is_stored = false;              // kept with a model: the default of evaluate and predict
  std::string_view help = {};
  // Allowed words, separated by '|'; of a number: the word for "not given".
  std::string_view words = {};
  std::string_view value = {};  // the value's name in --help; of a number: N or X if empty
  OptionRange range = {};       // of a number
  int64_t bare = 0;             // of a number: the value if none follows; 0: required
  char separator = '\0';        // of a list: also between values in one word
  OptionWording wordings[4] = {};
  std::string_view aliases = {};  // names in other programs, separated by blanks

  std::string_view name_in(Commands command) const;
  std::string_view help_in(Commands command) const;
};

enum class OptionKind { flag, number, whole_number, text, list };

// The variable that holds an option's value. An empty optional: the option was not given.
using OptionTarget =
    std::variant<bool*, int64_t*, uint64_t*, double*, std::string*, std::vector<std::string>*,
                 std::optional<int64_t>*, std::optional<double>*>;
// A copy of such a value; monostate for an empty optional.
using OptionValue = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string,
                                 std::vector<std::string>>;

OptionKind kind_of(const OptionTarget& target);
// A number or a text as --help shows it; "" for an empty optional, a flag and a list.
std::string text_of(const OptionValue& value);
OptionValue value_at(const OptionTarget& target);

// An option that the command line gave, with its value.
struct GivenOption {
  const OptionInfo* info;
  OptionValue value;
};

// An option that is stored in a member of Struct.
template <typename Struct>
struct OptionRow {
  using Member =
      std::variant<bool Struct::*, int64_t Struct::*, uint64_t Struct::*, double Struct::*,
                   std::string Struct::*, std::vector<std::string> Struct::*,
                   std::optional<int64_t> Struct::*, std::optional<double> Struct::*>;

  OptionTarget in(Struct& object) const {
    return std::visit([&](auto at) { return OptionTarget(&(object.*at)); }, member);
  }
  OptionValue value_in(const Struct& object) const {
    return value_at(in(const_cast<Struct&>(object)));  // read only
  }

  OptionInfo info;
  Member member;
};

}  // namespace finetune
