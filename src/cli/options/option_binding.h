// Adds rows of options to a command.
#pragma once

#include <optional>
#include <span>

#include "cli/parser.h"
#include "tasks/task.h"
#include "train/options/option_row.h"

namespace finetune {

// Whose words and names a command has for options, and what else differs.
struct OptionUse {
  Commands command = 0;
  // The task that the command is for; none: help names the task of an option.
  std::optional<TaskKind> task = {};
  // Options whose rows do not name the command: read, but not shown (config.toml has them); or left
  // out.
  bool hides_others = false;
};

// The option's value is stored in `target`, which must live until parsing is over.
Option add_option(Subcommand command, const OptionInfo& info, const OptionTarget& target,
                  const OptionUse& use);

// Adds the rows that `use` asks for, in their order; `object` must live until parsing is over.
template <typename Struct>
void add_options(Subcommand command, std::span<const OptionRow<Struct>> rows, Struct& object,
                 const OptionUse& use) {
  for (const OptionRow<Struct>& row : rows) {
    if (use.hides_others || (row.info.commands & use.command) != 0) {
      add_option(command, row.info, row.in(object), use);
    }
  }
}

}  // namespace finetune
