// What is known of an option: its name, help, place in a run, and what values it may have.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace finetune {

// How an option takes part in a run.
enum class OptionRole {
  result,   // changes the last step's weights or which step is exported: the same on --resume
  run,      // kept in config.toml, may differ on --resume
  session,  // of this one call: not kept (--resume, --overwrite)
};

// What a number may be: from `least` to `most`, both included unless said otherwise.
struct OptionRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false, below_most = false;  // that end is excluded
  bool as_float = false;                         // looked at in single precision
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

struct OptionInfo {
  constexpr OptionInfo(std::string_view name_, std::string_view group_, OptionRole role_,
                       OptionRange range_, std::string_view help_, std::string_view choices_ = "",
                       std::string_view value_ = "", int64_t bare_ = 0)
      : name(name_),
        group(group_),
        role(role_),
        help(help_),
        choices(choices_),
        value(value_),
        range(range_),
        bare(bare_) {}
  constexpr OptionInfo(std::string_view name_, std::string_view group_, OptionRole role_,
                       std::string_view help_, std::string_view choices_ = "",
                       std::string_view value_ = "")
      : OptionInfo(name_, group_, role_, OptionRange{}, help_, choices_, value_) {}

  std::string_view name;   // without dashes
  std::string_view group;  // heading in --help
  OptionRole role;
  std::string_view help;
  // Allowed words, separated by '|'; of a number: the word for "not given".
  std::string_view choices;
  std::string_view value;  // what --help calls the value; of a number: N or X if empty
  OptionRange range;       // of a number
  int64_t bare;            // of a number: what the option means without a value; 0: it needs one
};

}  // namespace finetune
