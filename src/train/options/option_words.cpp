// Sets options by name from words.
#include "train/options/option_words.h"

#include <algorithm>
#include <type_traits>

#include "core/error.h"

namespace finetune {
namespace {

// What require_inside says, behind the option's name.
template <typename Number>
std::string fault_of_range(const OptionInfo& info, Number value) {
  try {
    require_inside(info, value);
  } catch (const Error& error) {
    const std::string_view message = error.what();
    return std::string(message.substr(std::min(message.size(), info.name.size() + 3)));
  }
  return "";
}

struct Setter {
  const std::vector<std::string>& words;

  std::string operator()(const OptionInfo&, bool& value) const {
    if (words.at(0) != "true" && words.at(0) != "false") {
      return concat(in_quotes(words.at(0)), " is neither true nor false");
    }
    value = words.at(0) == "true";
    return "";
  }
  std::string operator()(const OptionInfo& info, std::string& value) const {
    value = words.at(0);
    return fault_of_word(info, value);
  }
  std::string operator()(const OptionInfo& info, std::vector<std::string>& value) const {
    value.clear();
    for (const std::string& word : words) {
      if (std::string fault = fault_of_word(info, word); !fault.empty()) return fault;
      if (info.name != "text-column") {
        value.push_back(word);
        continue;
      }
      for (std::string_view column : split(word, ',')) value.emplace_back(column);
    }
    return "";
  }
  template <typename Value>
  std::string operator()(const OptionInfo& info, Value& value) const {
    const std::string fault = take_number(info, words.at(0), value);
    return fault.empty() ? range_of(info, value) : fault;
  }

 private:
  std::string range_of(const OptionInfo& info, double value) const {
    return fault_of_range(info, value);
  }
  std::string range_of(const OptionInfo& info, int64_t value) const {
    return fault_of_range(info, value);
  }
  std::string range_of(const OptionInfo&, uint64_t) const { return ""; }
  template <typename Number>
  std::string range_of(const OptionInfo& info, const std::optional<Number>& value) const {
    return value ? range_of(info, *value) : "";
  }
};

OptionKind kind_of(bool) {
  return OptionKind::flag;
}
OptionKind kind_of(const std::string&) {
  return OptionKind::text;
}
OptionKind kind_of(const std::vector<std::string>&) {
  return OptionKind::list;
}
template <typename Value>
OptionKind kind_of(const Value&) {
  return std::is_same_v<typename OptionNumber<Value>::Type, double> ? OptionKind::number
                                                                    : OptionKind::whole_number;
}

}  // namespace

OptionKind kind_of_option(std::string_view name) {
  std::optional<OptionKind> kind;
  const TrainOptions options;
  for_each_option(options, [&](const OptionInfo& info, const auto& member) {
    if (info.name == name) kind = kind_of(member);
  });
  FINETUNE_CHECK(kind);
  return *kind;
}

std::string number_word(double value) {
  std::string text = format_number(value);
  const size_t e = text.find('e');
  if (e == std::string::npos) return text;
  size_t digits = e + 1;
  if (text[digits] == '+') text.erase(digits, 1);
  if (text[digits] == '-') ++digits;
  while (text[digits] == '0' && digits + 1 < text.size()) text.erase(digits, 1);
  return text;
}

std::string spelled_value(OptionKind kind, const std::string& word) {
  if (kind == OptionKind::whole_number) {
    const auto value = parse_int(word);
    return value ? concat(*value) : word;
  }
  const auto value = kind == OptionKind::number ? parse_double(word) : std::nullopt;
  return value ? number_word(*value) : word;
}

std::string fault_of_word(const OptionInfo& info, const std::string& word) {
  if (info.choices.empty()) return word.empty() ? "its value is empty" : "";
  const auto choices = split(info.choices, '|');
  if (std::find(choices.begin(), choices.end(), word) != choices.end()) return "";
  return concat(in_quotes(word), " is none of ", join({choices.begin(), choices.end()}, ", "));
}

std::string set_option(TrainOptions& options, std::string_view name,
                       const std::vector<std::string>& words) {
  std::string fault = "is no option of train";
  for_each_option(options, [&](const OptionInfo& info, auto& member) {
    if (info.name == name) fault = Setter{words}(info, member);
  });
  return fault;
}

}  // namespace finetune
