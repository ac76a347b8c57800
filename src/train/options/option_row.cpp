// The values that option rows refer to, of any type.
#include "train/options/option_row.h"

#include <type_traits>

#include "core/text/text.h"

namespace finetune {
namespace {

template <typename Value>
constexpr OptionKind kKind = OptionKind::whole_number;
template <>
constexpr OptionKind kKind<bool> = OptionKind::flag;
template <>
constexpr OptionKind kKind<double> = OptionKind::number;
template <>
constexpr OptionKind kKind<std::optional<double>> = OptionKind::number;
template <>
constexpr OptionKind kKind<std::string> = OptionKind::text;
template <>
constexpr OptionKind kKind<std::vector<std::string>> = OptionKind::list;

template <typename Value>
OptionValue copy(const Value& value) {
  return value;
}
template <typename Number>
OptionValue copy(const std::optional<Number>& value) {
  return value ? OptionValue(*value) : OptionValue();
}

struct AsText {
  std::string operator()(int64_t value) const { return concat(value); }
  std::string operator()(uint64_t value) const { return concat(value); }
  std::string operator()(double value) const { return concat(value); }
  std::string operator()(const std::string& value) const { return value; }
  template <typename Other>
  std::string operator()(const Other&) const {
    return "";
  }
};

}  // namespace

std::string_view OptionInfo::name_in(Commands command) const {
  for (const OptionWording& wording : wordings) {
    if ((wording.commands & command) != 0 && !wording.name.empty()) return wording.name;
  }
  return name;
}

std::string_view OptionInfo::help_in(Commands command) const {
  for (const OptionWording& wording : wordings) {
    if ((wording.commands & command) != 0 && !wording.help.empty()) return wording.help;
  }
  return help;
}

OptionKind kind_of(const OptionTarget& target) {
  return std::visit([](auto* at) { return kKind<std::remove_pointer_t<decltype(at)>>; }, target);
}

std::string text_of(const OptionValue& value) {
  return std::visit(AsText(), value);
}

OptionValue value_at(const OptionTarget& target) {
  return std::visit([](const auto* at) { return copy(*at); }, target);
}

}  // namespace finetune
