// Options of how rows are read, which evaluate and predict share.
#pragma once

#include <string>
#include <vector>

#include "cli/usage.h"
#include "data/rows/row_options.h"
#include "inference/fine_tuned_model.h"
#include "train/options/option_values.h"

namespace finetune {

struct RowWords {
  std::string delimiter = "auto";
  std::string encoding = "auto";
  bool skip_bad_rows = false;
};

inline void bind_row_options(Subcommand command, RowWords& words) {
  command.add_option("--delimiter", words.delimiter, option_help("delimiter"))
      .type_name("auto|comma|semicolon|tab|bar|C")
      .group("Data")
      .default_str("auto");
  command.add_option("--encoding", words.encoding, option_help("encoding"))
      .type_name("NAME")
      .group("Data")
      .default_str("auto");
  command.add_flag("--skip-bad-rows", words.skip_bad_rows, option_help("skip-bad-rows"))
      .group("Data");
}

// Error(usage) for words that cannot be, and for those given where `kind` of model has no rows.
inline RowOptions row_options(const RowWords& words, TaskKind kind, const std::string& model) {
  const RowWords usual;
  if (words.delimiter != usual.delimiter) require_option_of(kind, "delimiter", model);
  if (words.encoding != usual.encoding) require_option_of(kind, "encoding", model);
  if (words.skip_bad_rows) require_option_of(kind, "skip-bad-rows", model);
  require_encoding(words.encoding);
  return {.skip_bad_rows = words.skip_bad_rows,
          .delimiter = parse_delimiter(words.delimiter),
          .encoding = words.encoding};
}

}  // namespace finetune
