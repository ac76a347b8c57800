// Leaves out advice whose options the running command lacks.
#include "core/option_advice.h"

#include <algorithm>
#include <utility>

namespace finetune {
namespace {

std::optional<std::vector<std::string>> command_options;
thread_local std::vector<std::string> unused_options;

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_usable(std::string_view option) {
  return !holds(unused_options, option) && (!command_options || holds(*command_options, option));
}

}  // namespace

void set_command_options(std::optional<std::vector<std::string>> names) {
  command_options = std::move(names);
}

std::string option_advice(std::string_view text) {
  constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  for (size_t at = text.find("--"); at != text.npos; at = text.find("--", at)) {
    at += 2;
    const size_t end = std::min(text.find_first_not_of(kNameCharacters, at), text.size());
    if (!is_usable(text.substr(at, end - at))) return {};
  }
  return std::string(text);
}

UnusedOptions::UnusedOptions(std::vector<std::string> names)
    : before_(std::exchange(unused_options, std::move(names))) {}

UnusedOptions::~UnusedOptions() {
  unused_options = std::move(before_);
}

}  // namespace finetune
