// The overview, one-line usage errors with the closest name, and checks of option values.
#include "cli/usage.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/grid_line.h"
#include "cli/line_to_type.h"
#include "core/error.h"
#include "train/options/foreign/foreign_names.h"

namespace finetune {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

// The command whose options were being read; the program itself if none was named.
const CLI::App& chosen(const CLI::App& app) {
  auto parsed = app.get_subcommands();
  return parsed.empty() ? app : chosen(*parsed.front());
}

bool is_help(std::string_view argument) {
  return argument == "--help" || argument == "-h";
}

bool asks_for_help(const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), is_help);
}

std::string help_of(const CLI::App& app) {
  std::string path;
  for (const CLI::App* at = &app; at->get_parent(); at = at->get_parent()) {
    path = concat(" ", at->get_name(), path);
  }
  return concat("finetune", path, " --help");
}

Error unknown_command(const CLI::App& app, const std::string& name) {
  auto names = command_names(app);
  auto nearest = closest_match(name, names);
  return usage_error(
      "unknown command ", in_quotes(name), " (",
      nearest ? concat("did you mean ", *nearest, "?") : concat("there are ", join(names, ", ")),
      ")");
}

Error unknown_program_command(const CLI::App& app, const std::string& name) {
  if (const auto hint = foreign_command_hint(name)) return usage_error(*hint);
  if (const auto line = line_for_path(name)) {
    return usage_error("unknown command ", in_quotes(name), "; type: ", *line);
  }
  return unknown_command(app, name);
}

// Returns the options with `word` as a whole word in their names: --doc-stride for "stride".
std::vector<std::string> options_with_word(const std::vector<std::string>& names,
                                           const std::string& word) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    const std::string bounded = concat("-", name, "-");
    if (bounded.find(concat("-", word, "-")) != std::string::npos) found.push_back("--" + name);
  }
  return found;
}

// Returns "did you mean --epochs?", or the command that lists all options. `given` is without
// dashes; only the last name of a path such as training.max_steps counts.
std::string options_near(const CLI::App& app, const std::string& given) {
  constexpr size_t kMost = 3;
  const std::string name = given.substr(given.rfind('.') + 1);
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_lnames().empty()) names.push_back(option->get_lnames().front());
  }
  for (const std::string& own : names) {
    if (folded_name(own) == folded_name(name)) return concat("did you mean --", own, "?");
  }
  if (name.size() > 1) {
    if (const auto nearest = closest_match(name, names)) {
      return concat("did you mean --", *nearest, "?");
    }
    const auto with_word = options_with_word(names, name);
    if (!with_word.empty() && with_word.size() <= kMost) {
      return concat("did you mean ", join(with_word, " or "), "?");
    }
  }
  return concat(help_of(app), " all lists them");
}

Error unknown_option(const CLI::App& app, const std::string& name, const std::string& value) {
  const std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  auto has = [&](std::string_view own) {
    return app.get_option_no_throw(concat("--", own)) != nullptr;
  };
  // With one letter the dashes matter: -y says yes, and --y is a column.
  const std::string named = bare.size() == 1 ? name : bare;
  const auto from_table = [&]() { return foreign_option_hint(app.get_name(), named, value, has); };
  if (app.get_name() == "sweep") {
    if (const auto hint = from_table()) return usage_error(*hint);
  }
  if (const auto hint = grid_hint(app.get_name(), bare, value)) return usage_error(*hint);
  if (const auto hint = from_table()) return usage_error(*hint);
  return usage_error("unknown option ", in_quotes(name), " (", options_near(app, bare), ")");
}

// The program does not have this option, but a command may.
Error option_before_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_option_no_throw(name)) continue;
    return usage_error(name, ": the command comes first: finetune ", command->get_name(), " ", name,
                       " ...");
  }
  return unknown_option(app, name, "");
}

bool is_flag(const CLI::Option& option) {
  return option.get_expected_max() == 0;
}

// Words that the command takes without an option.
size_t most_arguments(const CLI::App& command) {
  size_t most = 0;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) most += size_t(option->get_expected_max());
  }
  return most;
}

bool is_name_of(const CLI::App& command, const std::string& argument) {
  return command.get_option_no_throw(argument.substr(0, argument.find('='))) != nullptr;
}

bool is_option(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-' && !parse_double(argument);
}

}  // namespace

void let_last_value_count(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    let_last_value_count(*command);
    for (CLI::Option* option : command->get_options()) {
      if (option->get_positional() || option->get_expected_max() > 1) continue;
      if (option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw) option->take_last();
    }
  }
}

std::string overview(const CLI::App& app) {
  constexpr size_t kColumn = 12;
  std::string text = concat(app.get_description(), "\nUsage: finetune COMMAND [OPTIONS]\n");
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string& name = command->get_name();
    const std::string gap(kColumn - std::min(name.size(), kColumn - 1), ' ');
    text += concat("  ", name, gap, command->get_description(), "\n");
  }
  return text + "\nfinetune COMMAND --help shows a command's options, and examples.\n";
}

bool take_help_all(std::vector<std::string>& arguments) {
  for (size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (!is_help(arguments[i]) || arguments[i + 1] != "all") continue;
    arguments.erase(arguments.begin() + int64_t(i) + 1);
    return true;
  }
  return false;
}

void check_names(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty()) throw usage_error("a command is needed, such as finetune train");
  if (is_option(arguments[0])) {
    const std::string name = arguments[0].substr(0, arguments[0].find('='));
    if (app.get_option_no_throw(name)) return;
    throw option_before_command(app, name);
  }
  const CLI::App* command = find_command(app, arguments[0]);
  if (!command) throw unknown_program_command(app, arguments[0]);
  GivenWords given{arguments[0], {}, {}, {}};
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == "--") return;
    if (!is_option(arguments[i])) {
      if (const CLI::App* inner = find_command(*command, arguments[i])) {
        command = inner;
      } else {
        given.loose.push_back(arguments[i]);
      }
      continue;
    }
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    const bool has_next = i + 1 < arguments.size();
    const CLI::Option* option = command->get_option_no_throw(name);
    if (!option) {
      const std::string next = has_next && !is_option(arguments[i + 1]) ? arguments[i + 1] : "";
      const bool attached = equals != std::string::npos;
      throw unknown_option(*command, name, attached ? arguments[i].substr(equals + 1) : next);
    }
    given.names.push_back(option->get_name());
    given.options.push_back(arguments[i]);
    if (is_flag(*option)) continue;
    if (equals + 1 == arguments[i].size()) throw usage_error(name, ": its value is empty");
    int most = option->get_expected_max();
    if (equals != std::string::npos) --most;
    if (equals == std::string::npos && option->get_expected_min() > 0) {
      if (!has_next) continue;
      --most;
      given.options.push_back(arguments[++i]);
      // Any other word is the value, even if it looks like an option.
      if (is_option(arguments[i]) && is_name_of(*command, arguments[i])) {
        throw usage_error(name, ": its value is missing before ", arguments[i]);
      }
    }
    for (; most > 0 && i + 1 < arguments.size() && !is_option(arguments[i + 1]); --most) {
      given.options.push_back(arguments[++i]);
    }
  }
  if (given.loose.size() <= most_arguments(*command)) return;
  if (!command_names(*command).empty()) throw unknown_command(*command, given.loose.front());
  if (asks_for_help(given.options)) {
    throw usage_error("there is no help topic ", in_quotes(given.loose.front()), "; ",
                      help_of(*command), " takes only all, which shows every option");
  }
  if (const auto line = line_to_type(given)) {
    throw usage_error("unexpected argument ", in_quotes(given.loose.front()), "; type: ", *line);
  }
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = chosen(app);
  std::string text = error.what();
  const std::string option = text.substr(0, text.find(':'));
  if (dynamic_cast<const CLI::ConversionError*>(&error)) {
    // CLI11 converts only flags; the rows of options read all other values.
    constexpr std::string_view prefix = "Could not convert: ";
    const size_t begin = text.starts_with(prefix) ? prefix.size() : 0;
    const size_t end = begin > 0 ? text.find(" = ") : text.find(':');
    return concat(text.substr(begin, end - begin), ": a flag takes no value");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    if (text.find("missing") != std::string::npos) return concat(option, ": its value is missing");
    return concat(option, ": has a number of values that it cannot take");
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error)) {
    const CLI::Option* missing = command.get_option_no_throw(text.substr(0, text.find(' ')));
    if (missing == nullptr) return text;
    return concat(missing->get_positional() ? missing->get_type_name() : missing->get_name(),
                  " is required: ", missing->get_description());
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    auto extras = command.remaining();
    std::string first = extras.empty() ? "" : extras.front();
    return concat("unexpected argument ", in_quotes(first), " (", help_of(command),
                  " shows what it takes)");
  }
  return text;
}

}  // namespace finetune
