// Streams one input's rows from a window of its bytes; read_table and RowReader use it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/input_file.h"
#include "data/rows/records.h"
#include "data/rows/row_grammar.h"
#include "data/source/byte_source.h"

namespace finetune {

// The part of an input in memory: all of it, or the bytes last read from a source.
class ByteWindow {
 public:
  explicit ByteWindow(std::string_view memory) : bytes_(memory), last_(true) {}
  explicit ByteWindow(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  std::string_view bytes() const { return bytes_; }
  bool last() const { return last_; }  // nothing follows bytes()
  void drop(size_t size) { bytes_.remove_prefix(size); }
  void more();  // reads on; invalidates views of bytes()
  double share() const { return source_ ? source_->share() : 1; }  // ByteSource::share()

 private:
  std::unique_ptr<ByteSource> source_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  std::string_view bytes_;
  bool last_ = false;
};

class RowStream {
 public:
  struct Options {
    RowOptions rows{};
    // The columns of the first file, if there is one; rows' values are in their order, joined by
    // name.
    std::vector<std::string> columns{};
    fs::path first_file{};               // the file with these columns
    bool recycle = false;                // values live only until the next row
    std::function<ByteWindow()> open{};  // reads the input anew; empty for a pipe
  };
  // Reads the header. `arena` stores values that must be unescaped.
  RowStream(const fs::path& path, ByteWindow window, Options options, TextArena& arena);

  bool next();   // false at the end
  bool ready();  // a complete row is in memory; invalidates values()
  double share() const { return window_.share(); }  // of the input, read so far
  const Values& values() const { return places_.empty() ? values_ : joined_; }
  uint32_t line() const { return line_; }  // where the row begins
  const std::vector<std::string>& columns() const { return columns_; }
  RowFormat format() const { return format_; }
  int64_t skipped_rows() const { return skipped_rows_; }
  const std::string& first_problem() const { return first_problem_; }  // of the skipped rows
  void say_dialect() const;  // logs how the input is read, if that is not obvious

 private:
  void see(size_t size);
  void find_format(const fs::path& path);
  void find_quotes();
  void find_delimiter();
  std::string_view first_line();
  char take_delimiter_line();
  bool keys_name_columns() const {
    return format_ == RowFormat::jsonl || format_ == RowFormat::json;
  }
  std::vector<std::string> header_names() const;
  std::vector<std::string> own_columns();
  void add_optional(std::vector<std::string>& names) const;
  JsonColumn kind_of(const std::string& column) const;
  void read_columns();
  void require_header_above();
  void require_distinct(const std::vector<std::string>& names) const;
  void join(const std::vector<std::string>& names);
  RowScan scan();
  bool find_row(RowScan& row);
  std::string problem_in(const RowScan& row) const;
  std::string advice_for_width() const;
  void note_blank(const RowScan& row);
  void join_values();
  void step_over(const RowScan& row);
  void step_over_line();

  fs::path path_;
  std::string name_;
  ByteWindow window_;
  Options options_;
  TextArena& arena_;
  RowFormat format_ = RowFormat::csv;
  char delimiter_ = ',';
  bool has_quoted_tabs_ = false;  // a TSV that is read as CSV
  char unused_delimiter_ = '\0';  // of a text file that looks like a table
  bool in_first_element_ = true;  // of a JSON array
  std::vector<std::string> columns_;
  JsonColumns kinds_;  // JSON
  size_t width_ = 0;   // number of values in a row of this input
  static constexpr size_t kMissing = size_t(-1);
  // index of each of columns_ in the input, or kMissing; empty: identical
  std::vector<size_t> places_;
  bool in_header_ = true;
  Values values_, joined_;
  int64_t blank_lines_ = 0;  // consecutive
  uint32_t line_ = 0;
  uint32_t next_line_ = 1;
  int64_t skipped_rows_ = 0;
  std::string first_problem_;
};

// "text, label and 3 more", for messages.
std::string listed_columns(const std::vector<std::string>& columns);
size_t find_column(const std::vector<std::string>& columns, std::string_view name,
                   const fs::path& file);

}  // namespace finetune
