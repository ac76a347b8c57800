// One input's rows, out of a window of its bytes: what read_table and RowReader stand on.
#pragma once

#include <cstdint>
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

// The part of an input that is in memory: all of it, or what was last read from a source.
class ByteWindow {
 public:
  explicit ByteWindow(std::string_view memory) : bytes_(memory), last_(true) {}
  explicit ByteWindow(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  std::string_view bytes() const { return bytes_; }
  bool last() const { return last_; }  // nothing follows bytes()
  void drop(size_t size) { bytes_.remove_prefix(size); }
  void more();  // reads on; views of bytes() die

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
    std::vector<std::string> columns{};  // JSON: of the files before, if any
    bool recycle = false;                // values need to live until the next row only
  };
  // Reads the header. `arena` takes the values that have to be unescaped.
  RowStream(const fs::path& path, ByteWindow window, Options options, TextArena& arena);

  bool next();   // false at the end
  bool ready();  // a whole row is in memory; values() die
  const Values& values() const { return values_; }
  uint32_t line() const { return line_; }  // where the row begins
  const std::vector<std::string>& columns() const { return columns_; }
  RowFormat format() const { return format_; }
  int64_t skipped_rows() const { return skipped_rows_; }
  const std::string& first_problem() const { return first_problem_; }  // of the skipped rows
  void say_dialect() const;  // to the log, if values are between something unusual

 private:
  void find_format(const fs::path& path);
  std::string_view first_line();
  RowFormat format_of_first_line();
  void find_delimiter();
  char take_delimiter_line();
  bool keys_name_columns() const {
    return format_ == RowFormat::jsonl || format_ == RowFormat::json;
  }
  std::vector<std::string> header_names() const;
  void read_columns();
  RowScan scan();
  bool find_row(RowScan& row);
  std::string problem_in(const RowScan& row) const;
  std::string advice_for_width() const;
  void step_over(const RowScan& row);
  void step_over_line();

  std::string name_;
  ByteWindow window_;
  Options options_;
  TextArena& arena_;
  RowFormat format_ = RowFormat::csv;
  char delimiter_ = ',';
  bool in_first_element_ = true;  // of a JSON array
  std::vector<std::string> columns_;
  bool in_header_ = true;
  Values values_;
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
