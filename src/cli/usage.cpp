// Help pages, one-line usage errors with the closest name, and checks of option values.
#include "cli/usage.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>

#include "core/error.h"
#include "train/options/foreign_names.h"

namespace finetune {
namespace {

class HelpStyle final : public CLI::Formatter {
 public:
  HelpStyle() { column_width(32); }

  std::string make_option_opts(const CLI::Option* option) const override {
    std::string type = option->get_type_name();
    return (type.empty() ? "" : " " + type) + (option->get_required() ? " (required)" : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    std::string value = option->get_default_str();
    if (option->get_expected_max() > 0 && !value.empty()) text += " [" + value + "]";
    return text;
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = "\nUsage: " + (name.empty() ? app->get_name() : name);
    if (app->get_require_subcommand_min() > 0) return usage + " COMMAND [OPTIONS]\n";
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_positional()) {
        usage += option->get_required() ? " " + option->get_type_name()
                                        : " [" + option->get_type_name() + "]";
      } else if (option->get_required()) {
        usage += " " + option->get_name() + " " + option->get_type_name();
      }
    }
    return usage + " [OPTIONS]\n";
  }
};

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

Error unknown_option(const CLI::App& app, const std::string& name) {
  if (name.starts_with("--")) {
    auto has = [&](std::string_view own) {
      return app.get_option_no_throw(concat("--", own)) != nullptr;
    };
    if (const auto hint = foreign_option_hint(name.substr(2), has)) return usage_error(*hint);
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) names.push_back(option->get_name());
  }
  auto nearest = closest_match(name, names);
  return usage_error(
      "unknown option ", in_quotes(name), " (",
      nearest ? concat("did you mean ", *nearest, "?") : concat(help_of(app), " lists them"), ")");
}

bool is_flag(const CLI::Option& option) {
  return option.get_expected_max() == 0;
}

bool is_name_of(const CLI::App& command, const std::string& argument) {
  return command.get_option_no_throw(argument.substr(0, argument.find('='))) != nullptr;
}

bool is_option(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-' && !parse_double(argument);
}

}  // namespace

void set_help_style(CLI::App& app) {
  app.formatter(std::make_shared<HelpStyle>());
  app.set_help_flag("-h,--help", "show this help");
}

void let_last_value_count(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    let_last_value_count(*command);
    for (CLI::Option* option : command->get_options()) {
      if (option->get_positional() || option->get_expected_max() > 1) continue;
      if (option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw) option->take_last();
    }
  }
}

void check_names(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    throw usage_error("a command is needed: ", join(command_names(app), ", "), " (", help_of(app),
                      " explains them)");
  }
  if (is_option(arguments[0])) {
    if (app.get_option_no_throw(arguments[0])) return;
    throw unknown_option(app, arguments[0]);
  }
  const CLI::App* command = find_command(app, arguments[0]);
  if (!command) throw unknown_command(app, arguments[0]);
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == "--") return;
    if (!is_option(arguments[i])) {
      if (const CLI::App* inner = find_command(*command, arguments[i])) command = inner;
      continue;
    }
    size_t equals = arguments[i].find('=');
    std::string name = arguments[i].substr(0, equals);
    const CLI::Option* option = command->get_option_no_throw(name);
    if (!option) throw unknown_option(*command, name);
    if (is_flag(*option)) continue;
    if (equals + 1 == arguments[i].size()) throw usage_error(name, ": its value is empty");
    if (equals != std::string::npos || option->get_expected_min() == 0) continue;
    // What else looks like an option is the value.
    if (++i < arguments.size() && is_option(arguments[i]) && is_name_of(*command, arguments[i])) {
      throw usage_error(name, ": its value is missing before ", arguments[i]);
    }
  }
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = chosen(app);
  std::string text = error.what();
  const std::string option = text.substr(0, text.find(':'));
  if (dynamic_cast<const CLI::ConversionError*>(&error)) {
    constexpr std::string_view prefix = "Could not convert: ";
    size_t equals = text.find(" = ");
    if (text.rfind(prefix, 0) != 0 || equals == std::string::npos) {
      return concat(option, ": a flag takes no value");
    }
    std::string name = text.substr(prefix.size(), equals - prefix.size());
    std::string value = text.substr(equals + 3);
    const CLI::Option* info = command.get_option_no_throw(name);
    if (info && is_flag(*info)) return concat(name, ": a flag takes no value");
    return concat(name, ": ", in_quotes(value),
                  parse_double(value) ? " is not a whole number" : " is not a number");
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

Option one_of(Option option, const std::vector<std::string>& words) {
  return option.type_name(join(words, "|")).check([words](std::string& given) {
    if (std::find(words.begin(), words.end(), given) != words.end()) return std::string();
    return concat(in_quotes(given), " is none of ", join(words, ", "));
  });
}

Option whole_number(Option option, int64_t least, int64_t most) {
  return option.type_name("N").check([least, most](std::string& given) {
    auto value = parse_int(given);
    if (value && *value >= least && *value <= most) return std::string();
    return concat(
        in_quotes(given), " is not a whole number ",
        most == INT64_MAX ? concat("of at least ", least) : concat("from ", least, " to ", most));
  });
}

Option whole_number_or(const std::string& word, Option option, int64_t least, int64_t most) {
  return option.type_name("N|" + word).transform([word, least, most](std::string& given) {
    auto value = parse_int(given);
    if (given == word) {
      given = "0";
    } else if (!value || *value < least || *value > most) {
      return concat(in_quotes(given), " is not a whole number from ", least, " to ", most, " or ",
                    word);
    }
    return std::string();
  });
}

}  // namespace finetune
