// Adds rows of options to a command.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cli/parser.h"
#include "tasks/task.h"
#include "train/options/option_row.h"

namespace finetune {

// How a command uses options: their names, their help, and which are hidden.
struct OptionUse {
  Commands command = commands::all;  // all: the rows belong to this command alone
  // The task that the command is for; none: help names the task of an option.
  std::optional<TaskKind> task = {};
  // Also adds options whose rows do not name the command, but hides them: config.toml may have
  // them.
  bool hides_others = false;
};

// The option's value is stored in `target`, which must live until parsing is over.
Option add_option(Subcommand command, const OptionInfo& info, const OptionTarget& target,
                  const OptionUse& use);

// Adds the rows that name the command, in their order; `object` must live until parsing is over.
template <typename Struct>
void add_options(Subcommand command, std::span<const OptionRow<Struct>> rows, Struct& object,
                 const OptionUse& use = {}) {
  for (const OptionRow<Struct>& row : rows) {
    if (use.hides_others || (row.info.commands & use.command) != 0) {
      add_option(command, row.info, row.in(object), use);
    }
  }
}

// After parsing: appends the options that the command line gave. The rows must outlive `given`.
template <typename Struct>
void append_given(Subcommand command, std::span<const OptionRow<Struct>> rows, const Struct& object,
                  std::vector<GivenOption>& given) {
  for (const OptionRow<Struct>& row : rows) {
    if (command.is_given(row.info.name)) given.push_back({&row.info, row.value_in(object)});
  }
}

// The same for rows in an array.
template <typename Struct, size_t N>
void add_options(Subcommand command, const OptionRow<Struct> (&rows)[N], Struct& object,
                 const OptionUse& use = {}) {
  add_options(command, std::span<const OptionRow<Struct>>(rows), object, use);
}
template <typename Struct, size_t N>
void append_given(Subcommand command, const OptionRow<Struct> (&rows)[N], const Struct& object,
                  std::vector<GivenOption>& given) {
  append_given(command, std::span<const OptionRow<Struct>>(rows), object, given);
}

}  // namespace finetune
