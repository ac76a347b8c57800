// CSV, TSV, plain text and their packings and encodings. The first two bytes choose options of the
// reader.
#include "fuzz/targets/data/row_checks.h"

namespace finetune::fuzz {
namespace {

constexpr char kDelimiters[] = {'\0', ',', ';', '\t', '|', '^'};
constexpr const char* kEncodings[] = {"auto",        "utf-8",    "utf-16",      "windows-1252",
                                      "iso-8859-15", "utf-32",   "iso-2022-jp", "gb18030",
                                      "shift_jis",   "utf-16le", "utf-7",       "big5"};
constexpr const char* kNames[] = {"rows.csv", "rows.tsv", "rows.txt", "rows.csv.gz", "rows"};

template <typename Value, size_t size>
Value chosen(const Value (&from)[size], uint8_t byte) {
  return from[byte % size];
}

void check_any_rows(std::string_view input) {
  if (input.size() < 2) return;
  const auto first = uint8_t(input[0] - 'A'), second = uint8_t(input[1] - 'A');
  const RowOptions options{.skip_bad_rows = first % 2 == 1,
                           .delimiter = chosen(kDelimiters, first / 2),
                           .encoding = chosen(kEncodings, second)};
  check_rows(scratch_file(chosen(kNames, first / 12), input.substr(2)), options);
}

// Beside the window of a packed file: a row of up to 64 MiB.
const Registration kRowsTarget({.name = "rows",
                                .run = check_any_rows,
                                .memory = size_t{512} << 20});

}  // namespace
}  // namespace finetune::fuzz
