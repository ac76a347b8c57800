// Subcommands and their options: a cover over CLI11. Its header takes longer to compile than a
// command does, so that only parser.cpp and usage.cpp include it.
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
  // What --help shows.
  Option default_str(const std::string& text) const;
  // How many words it takes.
  Option expected(int count) const;
  Option expected(int least, int most) const;
  Option delimiter(char separator) const;
  // Given several times, the last one counts, or all.
  Option take_last() const;
  Option take_all() const;

 private:
  CLI::Option* option_;
};

// A handle of a subcommand, or of the whole program, whose subcommands are the commands. What its
// options and callbacks refer to must live until parsing is over.
class Subcommand {
 public:
  explicit Subcommand(CLI::App* app) : app_(app) {}

  Subcommand add_subcommand(const std::string& name, const std::string& help) const;
  Option add_flag(const std::string& name, bool& value, const std::string& help) const;
  // `take` gets the word; what it returns is wrong with it, if it is not empty.
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
  // What cli/completion reads.
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
  // Once the subcommands are added. Runs what `arguments` say (callbacks throw what they like), or
  // returns the text that they ask for with --help or --version; `whole_help`: with every option.
  // Error(usage) in our words.
  std::optional<std::string> parse(std::vector<std::string> arguments, bool whole_help = false);
  // The commands with a line each: fits a terminal of 80 columns and 24 rows.
  std::string overview() const;
  // The options (without dashes) that messages of the command may name: its own, and for a sweep
  // those of train, which are keys of its grid.
  std::vector<std::string> options_for(const std::vector<std::string>& arguments) const;
  // Error(usage) for a command or an option that does not exist, before anything is parsed.
  void check_names(const std::vector<std::string>& arguments) const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace finetune
