// The lexer and parser behind config.toml and a sweep's grid: names, strings, numbers, arrays.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "train/options/config_file.h"

namespace finetune {

constexpr size_t kMostOptions = 1000;  // in a table: more than there are options

// Reads a text from its beginning. Each function moves on to the end of what it read. Faults are
// Error(code) "file:line: ...".
class ConfigParser {
 public:
  // Error if the text is not UTF-8. `text` and `file` must outlive the parser.
  ConfigParser(std::string_view text, const std::string& file, ExitCode code);

  // Parses all entries up to the end or the next table. A duplicate name is an error.
  std::vector<ConfigEntry> parse_entries();

  template <typename... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw Error(code_, concat(file_, ":", line_, ": ", parts...));
  }
  int line() const { return line_; }
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  char take();
  void skip_blanks();
  // White space, comments and line ends.
  void skip_lines();
  // A name, with '-' in place of '_'.
  std::string parse_name();
  // "name =" and the blanks after it.
  std::string parse_name_of_entry();
  std::string parse_scalar();
  void parse_array(std::vector<std::string>& values);
  // The rest of the line after a value: blanks, a comment and the line's end.
  void end_entry(const std::string& name);

 private:
  void skip_comment();
  ConfigEntry parse_entry();
  std::string parse_string();
  void parse_escape(std::string& out);

  std::string_view text_;
  const std::string& file_;
  ExitCode code_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace finetune
