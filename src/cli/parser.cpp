// Wraps CLI11: options, subcommands, parsing.
#include "cli/parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/completion/command_table.h"
#include "cli/completion/completion_scripts.h"
#include "cli/standard_output.h"
#include "cli/usage.h"
#include "core/error.h"

namespace finetune {

Option Option::required() const {
  return Option(option_->required());
}

Option Option::type_name(const std::string& name) const {
  return Option(option_->type_name(name));
}

Option Option::group(const std::string& name) const {
  return Option(option_->group(name));
}

// CLI11's flag `configurable` is unused here, since config files are read elsewhere: false marks a
// common option.
Option Option::common() const {
  return Option(option_->configurable(false));
}

Option Option::default_str(const std::string& text) const {
  return Option(option_->default_str(text));
}

Option Option::expected(int count) const {
  return Option(option_->expected(count));
}

Option Option::expected(int least, int most) const {
  return Option(option_->expected(least, most));
}

Option Option::delimiter(char separator) const {
  return Option(option_->delimiter(separator));
}

Option Option::take_last() const {
  return Option(option_->take_last());
}

Option Option::take_all() const {
  return Option(option_->take_all());
}

Subcommand Subcommand::add_subcommand(const std::string& name, const std::string& help) const {
  return Subcommand(app_->add_subcommand(name, help));
}

Option Subcommand::add_flag(const std::string& name, bool& value, const std::string& help) const {
  return Option(app_->add_flag(name, value, help));
}

namespace {

template <typename Words>
std::function<void(const Words&)> or_error(const std::string& name,
                                           std::function<std::string(const Words&)> take) {
  return [name, take = std::move(take)](const Words& words) {
    const std::string wrong = take(words);
    if (!wrong.empty()) throw CLI::ValidationError(name, wrong);
  };
}

}  // namespace

Option Subcommand::add_option_function(
    const std::string& name, const std::function<std::string(const std::string& word)>& take,
    const std::string& help) const {
  return Option(app_->add_option_function(name, or_error(name, take), help));
}

Option Subcommand::add_list_function(
    const std::string& name,
    const std::function<std::string(const std::vector<std::string>& words)>& take,
    const std::string& help) const {
  return Option(app_->add_option_function(name, or_error(name, take), help));
}

void Subcommand::footer(const std::string& text) const {
  app_->footer(text);
}

void Subcommand::require_subcommand(int least, int most) const {
  app_->require_subcommand(size_t(least), size_t(most));
}

void Subcommand::callback(std::function<void()> run) const {
  app_->callback(std::move(run));
}

bool Subcommand::subcommand_is_given() const {
  return !app_->get_subcommands().empty();
}

bool Subcommand::is_given(std::string_view name) const {
  const CLI::Option* option = app_->get_option_no_throw(concat("--", name));
  return option && option->count() > 0;
}

std::string Subcommand::given() const {
  std::string text = app_->get_name();
  for (const CLI::Option* option : app_->get_options()) {
    if (option->count() == 0) continue;
    text += "\n" + option->get_name();
    for (const std::string& word : option->results()) text.append(1, '\0').append(word);
  }
  return text;
}

Parser::Parser(const std::string& name, const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->set_help_flag("-h,--help", "show this help; --help all: every option");
  app_->set_version_flag("-V,--version", version, "show the version");
  app_->require_subcommand(1);
  app_->fallthrough(false);
}

Parser::~Parser() = default;

Subcommand Parser::root() const {
  return Subcommand(app_.get());
}

std::string Parser::overview() const {
  return finetune::overview(*app_);
}

namespace {

std::string output_group(const CLI::App& command) {
  for (const char* name : {"--json", "--quiet", "--overwrite"}) {
    if (const CLI::Option* option = command.get_option_no_throw(name)) return option->get_group();
  }
  return "Options";
}

void add_flag_below(CLI::App& app, const std::string& name, bool& value, const std::string& help) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    add_flag_below(*command, name, value, help);
    if (!command->get_subcommands([](CLI::App*) { return true; }).empty()) continue;
    if (command->get_name() == "completion" || command->get_name() == "help") continue;
    command->add_flag(name, value, help)->group(output_group(*command));
  }
}

}  // namespace

void Parser::add_flag_to_commands(const std::string& name, bool& value,
                                  const std::string& help) const {
  add_flag_below(*app_, name, value, help);
}

void Parser::check_names(const std::vector<std::string>& arguments) const {
  finetune::check_names(*app_, arguments);
}

std::vector<std::string> Parser::options_for(const std::vector<std::string>& arguments) const {
  std::vector<std::string> names;
  const auto add = [&](const CLI::App& command) {
    for (const CLI::Option* option : command.get_options()) {
      names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
    }
  };
  for (const CLI::App* command : app_->get_subcommands([](CLI::App*) { return true; })) {
    const std::string& name = command->get_name();
    const bool is_running = !arguments.empty() && arguments[0] == name;
    const bool is_in_grid = !arguments.empty() && arguments[0] == "sweep" && name == "train";
    if (is_running || is_in_grid) add(*command);
    if (!is_running) continue;
    for (const CLI::App* inner : command->get_subcommands([](const CLI::App*) { return true; })) {
      add(*inner);
    }
  }
  return names;
}

std::optional<std::string> Parser::parse(std::vector<std::string> arguments, bool whole_help) {
  let_last_value_count(*app_);
  std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 takes them
  try {
    app_->parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw usage_error(usage_message(*app_, error));
    if (dynamic_cast<const CLI::CallForVersion*>(&error)) return concat(error.what(), "\n");
    const CommandEntry command = describe_given(root());
    const size_t columns = standard_output_columns();
    return whole_help ? full_help_page(command, columns) : help_page(command, columns);
  }
  return std::nullopt;
}

}  // namespace finetune
