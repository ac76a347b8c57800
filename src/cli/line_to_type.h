// The complete command line for words that were given without their options.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace finetune {

// A command line, taken apart.
struct GivenWords {
  std::string command;
  std::vector<std::string> options;  // with their values, as they were typed
  std::vector<std::string> names;    // of these options, such as "--model"
  std::vector<std::string> loose;    // words that stand without an option
};

// Returns "finetune predict --model runs/a --input new.csv --output -" for the words "runs/a" and
// "new.csv": looks at the files to tell a model from data. Capitals (MODEL) stand for a required
// word that is missing. Returns nothing if a word has no place.
std::optional<std::string> line_to_type(const GivenWords& given);

// Returns the line for a file or directory in place of a command, or nothing if there is no file.
std::optional<std::string> line_for_path(const std::string& path);

}  // namespace finetune
