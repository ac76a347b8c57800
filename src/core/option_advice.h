// Advice in messages that names options of the running command.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace finetune {

// Says which options the running command has, by their names without dashes. Without names, as
// before the first call, advice may name every option.
void set_command_options(std::optional<std::vector<std::string>> names);

// Returns `text` if the running command has every option that it names ("--skip-bad-rows"), else an
// empty string.
std::string option_advice(std::string_view text);

// During its lifetime, advice on this thread names none of these options, because they have no
// effect on the input that is being read.
class UnusedOptions {
 public:
  explicit UnusedOptions(std::vector<std::string> names);
  ~UnusedOptions();
  UnusedOptions(const UnusedOptions&) = delete;
  UnusedOptions& operator=(const UnusedOptions&) = delete;

 private:
  std::vector<std::string> before_;
};

}  // namespace finetune
