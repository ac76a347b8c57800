#include "data/row_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "data/row_stream.h"

namespace finetune {
namespace {

bool is_pipe(const fs::path& path) {
  std::error_code ignored;
  return path == "-" || (fs::exists(path, ignored) && !fs::is_directory(path, ignored) &&
                         !fs::is_regular_file(path, ignored));
}

// The descriptor of a nameless temporary file with all that `path` gives.
int copy_of_pipe(const fs::path& path) {
  const char* directory = ::getenv("TMPDIR");
  std::string name = concat(directory && *directory ? directory : "/tmp", "/finetune-XXXXXX");
  int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  auto fail = [&] {
    return model_error(name, ": a copy of ", input_name(path),
                       " cannot be written: ", std::strerror(errno),
                       " (TMPDIR names another directory)");
  };
  if (descriptor < 0) throw fail();
  ::unlink(name.c_str());
  ByteWindow window = ByteWindow::open(path);
  while (!window.last()) {
    window.more();
    while (!window.bytes().empty()) {
      ssize_t count = ::write(descriptor, window.bytes().data(), window.bytes().size());
      if (count < 0 && errno != EINTR) throw fail();
      if (count > 0) window.drop(size_t(count));
    }
  }
  return descriptor;
}

}  // namespace

struct RowFiles::Open {
  Open(const fs::path& name, const fs::path& readable, bool skip_bad_rows,
       const std::vector<std::string>& columns, uint32_t index)
      : stream(name, ByteWindow::open(readable),
               {.skip_bad_rows = skip_bad_rows, .columns = columns, .recycle = true}, arena),
        file(index) {}
  TextArena arena;
  RowStream stream;
  uint32_t file;
  int64_t rows = 0;
};

RowFiles::RowFiles(std::vector<fs::path> files, bool skip_bad_rows)
    : files_(std::move(files)), skip_bad_rows_(skip_bad_rows) {
  FINETUNE_CHECK(!files_.empty());
  for (const fs::path& file : files_) {
    if (is_pipe(file)) {
      descriptors_.push_back(copy_of_pipe(file));
      readable_.push_back(concat("/proc/self/fd/", descriptors_.back()));
    } else {
      readable_.push_back(file);
    }
  }
  open(0);
}

RowFiles::~RowFiles() {
  for (int descriptor : descriptors_) ::close(descriptor);
}

void RowFiles::open(size_t file) {
  open_ = std::make_unique<Open>(files_[file], readable_[file], skip_bad_rows_, columns_,
                                 uint32_t(file));
  const std::vector<std::string>& columns = open_->stream.columns();
  if (columns_.empty()) columns_ = columns;
  if (columns_ != columns) {
    throw data_error(input_name(files_[file]), ": its columns (", join(columns, ", "),
                     ") differ from those of ", input_name(files_.front()), " (",
                     join(columns_, ", "), ")");
  }
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
    if (open_->rows == 0) throw data_error(input_name(files_[open_->file]), ": holds no rows");
    if (open_->file + 1 == files_.size()) return false;
    skipped_before_ += stream.skipped_rows();
    open(open_->file + 1);
  }
}

void RowFiles::rewind() {
  skipped_before_ = 0;
  open(0);
}

std::string RowFiles::where(const Row& row) const {
  return concat(input_name(files_[row.file]), ":", row.line);
}

int64_t RowFiles::skipped_rows() const {
  return skipped_before_ + open_->stream.skipped_rows();
}

}  // namespace finetune
