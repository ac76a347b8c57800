// Reads whole tables into memory, and rows one at a time (RowReader).
#include "data/rows/records.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "data/rows/row_stream.h"

namespace finetune {
namespace {

constexpr size_t kViewsInBlock = 64 << 10;

}  // namespace

size_t Table::column(std::string_view name) const {
  return find_column(columns_, name, files_.front());
}

bool Table::has_column(std::string_view name) const {
  return std::find(columns_.begin(), columns_.end(), name) != columns_.end();
}

std::string Table::where(const Row& row) const {
  return concat(input_name(files_[row.file]), ":", row.line);
}

void Table::set_value(size_t row, size_t column, std::string_view value) {
  // The table owns the memory that its rows' spans point to.
  const_cast<std::string_view&>(rows_[row].values[column]) = arena_.keep(value);
}

void Table::keep(const std::vector<uint32_t>& rows) {
  size_t views = 0;
  for (uint32_t row : rows) views += rows_[row].values.size();
  auto values = std::make_unique<std::string_view[]>(views);
  std::string_view* next = values.get();
  std::vector<std::span<const std::string_view>> kept;
  TextArena arena;
  for (uint32_t row : rows) {
    std::string_view* first = next;
    for (std::string_view value : rows_[row].values) *next++ = arena.keep(value);
    kept.emplace_back(first, next);
  }
  check_intact();
  for (Row& row : rows_) row.values = {};
  for (size_t i = 0; i < rows.size(); ++i) rows_[rows[i]].values = kept[i];
  arena_ = std::move(arena);
  values_.clear();
  values_.push_back(std::move(values));
  maps_.clear();
}

void Table::check_intact() const {
  for (const MappedFile& map : maps_) map.check_intact();
}

class TableReader {
 public:
  TableReader(const RowOptions& options, int64_t limit) : options_(options), limit_(limit) {}

  bool full() const { return limit_ > 0 && int64_t(table_.rows_.size()) >= limit_; }

  void read(const InputFile& input) {
    const InputFile file = as_text(in_memory(input), options_.encoding);
    table_.files_.push_back(file.name);
    const MappedFile& map = table_.maps_.emplace_back(file.content);
    map.read_intact([&] { read_rows(file.name, map.text()); });
  }

  Table take() { return std::move(table_); }

 private:
  void read_rows(const fs::path& path, std::string_view text) {
    RowStream stream(
        path, ByteWindow(text),
        {.rows = options_, .columns = table_.columns_, .first_file = table_.files_.front()},
        table_.arena_);
    stream.say_dialect();
    if (table_.columns_.empty()) table_.columns_ = stream.columns();
    const size_t before = table_.rows_.size();
    while (!full() && stream.next()) add(stream.values(), stream.line());
    table_.skipped_rows_ += stream.skipped_rows();
    if (table_.first_problem_.empty()) table_.first_problem_ = stream.first_problem();
    if (table_.rows_.size() > before) return;
    if (stream.skipped_rows() > 0) {
      throw data_error(stream.first_problem(), " (and no other row can be used)");
    }
    throw data_error(input_name(path), text.empty() ? ": is empty" : ": holds no rows");
  }

  void add(const Values& values, uint32_t line) {
    if (values.size() > left_) {
      left_ = std::max(kViewsInBlock, values.size());
      free_ = table_.values_.emplace_back(std::make_unique<std::string_view[]>(left_)).get();
    }
    std::copy(values.begin(), values.end(), free_);
    table_.rows_.push_back({{free_, values.size()}, uint32_t(table_.files_.size() - 1), line});
    free_ += values.size();
    left_ -= values.size();
  }

  Table table_;
  RowOptions options_;
  int64_t limit_;
  std::string_view* free_ = nullptr;  // in the last block of views
  size_t left_ = 0;
};

Table read_table(const std::vector<InputFile>& files, const RowOptions& options, int64_t limit) {
  FINETUNE_CHECK(!files.empty());
  TableReader reader(options, limit);
  for (const InputFile& file : files) {
    if (!reader.full()) reader.read(file);
  }
  return reader.take();
}

namespace {

// Returns a function that opens the file again; empty for a pipe.
std::function<ByteWindow()> reopen(const fs::path& file, const RowOptions& options) {
  if (is_pipe(file)) return {};
  return [=] { return ByteWindow(open_text(file, options.encoding)); };
}

}  // namespace

struct RowReader::State {
  State(const fs::path& file, const RowOptions& options)
      : path(file),
        stream(file, ByteWindow(open_text(file, options.encoding)),
               {.rows = options, .recycle = true, .open = reopen(file, options)}, arena) {
    stream.say_dialect();
  }
  fs::path path;
  TextArena arena;
  RowStream stream;
};

RowReader::RowReader(const fs::path& file, const RowOptions& options)
    : state_(std::make_unique<State>(file, options)) {}
RowReader::~RowReader() = default;
RowReader::RowReader(RowReader&&) noexcept = default;
RowReader& RowReader::operator=(RowReader&&) noexcept = default;

bool RowReader::next(Row& row) {
  if (!state_->stream.next()) return false;
  row = {state_->stream.values(), 0, state_->stream.line()};
  return true;
}

bool RowReader::ready() {
  return state_->stream.ready();
}

RowFormat RowReader::format() const {
  return state_->stream.format();
}
const std::vector<std::string>& RowReader::columns() const {
  return state_->stream.columns();
}
size_t RowReader::column(std::string_view name) const {
  return find_column(columns(), name, state_->path);
}
bool RowReader::has_column(std::string_view name) const {
  return std::find(columns().begin(), columns().end(), name) != columns().end();
}
std::string RowReader::where(const Row& row) const {
  return concat(input_name(state_->path), ":", row.line);
}
const std::string& RowReader::first_problem() const {
  return state_->stream.first_problem();
}
double RowReader::share() const {
  return state_->stream.share();
}

int64_t RowReader::skipped_rows() const {
  return state_->stream.skipped_rows();
}

}  // namespace finetune
