// Streams the rows of several files, and starts again from the first one.
#include "data/rows/row_files.h"

#include <utility>

#include "core/error.h"
#include "data/rows/row_stream.h"

namespace finetune {

struct RowFiles::Open {
  Open(const InputFile& input, const RowOptions& options, const std::vector<std::string>& columns,
       const fs::path& first_file, uint32_t index)
      : stream(input.name, window_of(input, options),
               {.rows = options,
                .columns = columns,
                .first_file = first_file,
                .recycle = true,
                .open = [=] { return window_of(input, options); }},
               arena),
        file(index) {}
  static ByteWindow window_of(const InputFile& input, const RowOptions& options) {
    return ByteWindow(open_text(input.content, options.encoding));
  }
  TextArena arena;
  RowStream stream;
  uint32_t file;
  int64_t rows = 0;
};

RowFiles::RowFiles(const std::vector<InputFile>& files, const RowOptions& options)
    : options_(options) {
  FINETUNE_CHECK(!files.empty());
  for (const InputFile& file : files) inputs_.push_back(rereadable(file));
  open(0);
}

RowFiles::~RowFiles() = default;

void RowFiles::open(size_t file) {
  open_ = std::make_unique<Open>(inputs_[file], options_, columns_, first_file(), uint32_t(file));
  if (file >= said_) {
    open_->stream.say_dialect();
    said_ = file + 1;
  }
  if (columns_.empty()) columns_ = open_->stream.columns();
}

bool RowFiles::next(Row& row) {
  for (;;) {
    RowStream& stream = open_->stream;
    if (stream.next()) {
      ++open_->rows;
      row = {stream.values(), open_->file, stream.line()};
      return true;
    }
    if (open_->rows == 0 && stream.skipped_rows() > 0) {
      throw data_error(stream.first_problem(), " (and no other row can be used)");
    }
    if (open_->rows == 0)
      throw data_error(input_name(inputs_[open_->file].name), ": holds no rows");
    if (open_->file + 1 == inputs_.size()) return false;
    skipped_before_ += stream.skipped_rows();
    open(open_->file + 1);
  }
}

void RowFiles::rewind() {
  skipped_before_ = 0;
  open(0);
}

std::string RowFiles::where(const Row& row) const {
  return concat(input_name(inputs_[row.file].name), ":", row.line);
}

int64_t RowFiles::skipped_rows() const {
  return skipped_before_ + open_->stream.skipped_rows();
}

}  // namespace finetune
