// Subcommands and their options: a wrapper around CLI11. CLI11's header takes longer to compile
// than a command, so only parser.cpp, usage.cpp and command_table.cpp include it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace finetune {

// A handle; the parser owns the option. Each setting returns the handle for the next.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required() const;
  Option type_name(const std::string& name) const;
  Option group(const std::string& name) const;
  // The short --help shows it.
  Option common() const;
  // The default that --help shows.
  Option default_str(const std::string& text) const;
  // The number of words that the option takes.
  Option expected(int count) const;
  Option expected(int least, int most) const;
  Option delimiter(char separator) const;
  // If the option is given several times, the last value counts, or all values.
  Option take_last() const;
  Option take_all() const;

 private:
  CLI::Option* option_;
};

// A handle of a subcommand, or of the whole program, whose subcommands are the commands. Objects to
// which its options and callbacks refer must live until parsing is over.
class Subcommand {
 public:
  explicit Subcommand(CLI::App* app) : app_(app) {}

  Subcommand add_subcommand(const std::string& name, const std::string& help) const;
  Option add_flag(const std::string& name, bool& value, const std::string& help) const;
  // `take` gets the word and returns what is wrong with it, or an empty string.
  Option add_option_function(const std::string& name,
                             const std::function<std::string(const std::string& word)>& take,
                             const std::string& help) const;
  // The same for an option of several words.
  Option add_list_function(
      const std::string& name,
      const std::function<std::string(const std::vector<std::string>& words)>& take,
      const std::string& help) const;
  void footer(const std::string& text) const;
  void require_subcommand(int least, int most) const;
  // Runs once the command line is read and the subcommand is on it.
  void callback(std::function<void()> run) const;
  // After parsing: one of its own subcommands was given.
  bool subcommand_is_given() const;
  // After parsing: the option of this name (without dashes) exists and was given.
  bool is_given(std::string_view name) const;
  // After parsing: its name, and the options that were given with their words.
  std::string given() const;
  // For cli/completion, which reads the options.
  const CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

// The whole command line.
class Parser {
 public:
  Parser(const std::string& name, const std::string& description, const std::string& version);
  ~Parser();

  Subcommand root() const;
  // Adds a flag to every command that has options of its own, in the group of its --json or
  // --quiet. Call it after the commands are added.
  void add_flag_to_commands(const std::string& name, bool& value, const std::string& help) const;
  // Call it after the subcommands are added. Runs the command in `arguments`, whose callback may
  // throw any exception, or returns the text for --help or --version; `whole_help`: with every
  // option. Error(usage), in our words, for a wrong command line.
  std::optional<std::string> parse(std::vector<std::string> arguments, bool whole_help = false);
  // Lists the commands, one per line; fits a terminal of 80 columns and 24 rows.
  std::string overview() const;
  // Returns the options (without dashes) that messages of the command may name: its own, and for a
  // sweep the options of train, which are keys of its grid.
  std::vector<std::string> options_for(const std::vector<std::string>& arguments) const;
  // Error(usage) for a command or an option that does not exist, before anything is parsed.
  void check_names(const std::vector<std::string>& arguments) const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace finetune
