// An option that is a number inside bounds, read by our own rules.
#pragma once

#include <optional>
#include <string>

#include "cli/parser.h"
#include "core/text/text.h"

namespace finetune {

// From `least` to `most`, both included; nothing where it is not given.
inline Option number_between(Subcommand command, const std::string& name,
                             std::optional<double>& value, double least, double most,
                             const std::string& help) {
  return command
      .add_option_function(
          name,
          [&value, least, most](const std::string& word) -> std::string {
            const std::optional<double> number = parse_double(word);
            if (!number || !(*number >= least && *number <= most)) {
              return concat(in_quotes(word), " is not a number from ", least, " to ", most);
            }
            value = number;
            return {};
          },
          help)
      .take_last();
}

}  // namespace finetune
