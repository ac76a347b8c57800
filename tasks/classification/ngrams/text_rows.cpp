// Writes and reads records: a fixed head, the text's bytes and the labels.
#include "tasks/classification/ngrams/text_rows.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "data/columns/amount.h"

namespace finetune {
namespace {

constexpr size_t kBufferBytes = 1 << 16;

struct RowHead {
  uint32_t text_bytes;
  uint32_t labels;
  double target;
};

constexpr const char* kWhat = "rows for the n-gram baseline";

}  // namespace

TextRows::TextRows() : file_(kWhat) {}
TextRows::TextRows(int descriptor) : file_(kWhat, descriptor) {}

void TextRows::add(std::string_view text, std::span<const int32_t> labels, double target) {
  const RowHead head{uint32_t(text.size()), uint32_t(labels.size()), target};
  buffer_.append(reinterpret_cast<const char*>(&head), sizeof head);
  buffer_.append(text);
  buffer_.append(reinterpret_cast<const char*>(labels.data()), labels.size_bytes());
  ++size_;
  if (buffer_.size() >= kBufferBytes) flush();
}

void TextRows::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

bool TextRowReader::take(void* out, size_t size) {
  if (buffer_.size() - at_ < size) {
    buffer_.erase(0, at_);
    at_ = 0;
    const size_t there = buffer_.size();
    buffer_.resize(std::max(size, kBufferBytes));
    const ssize_t count =
        ::pread(descriptor_, buffer_.data() + there, buffer_.size() - there, off_t(offset_));
    if (count < 0) throw model_error("rows of the n-gram baseline: ", std::strerror(errno));
    offset_ += count;
    buffer_.resize(there + size_t(count));
    if (buffer_.empty()) return false;
    if (buffer_.size() < size) throw model_error("rows of the n-gram baseline: cut short");
  }
  std::memcpy(out, buffer_.data() + at_, size);
  at_ += size;
  return true;
}

bool TextRowReader::next(TextRow& row) {
  RowHead head;
  if (!take(&head, sizeof head)) return false;
  row.text.resize(head.text_bytes);
  row.labels.resize(head.labels);
  row.target = head.target;
  if (head.text_bytes > 0) take(row.text.data(), head.text_bytes);
  if (head.labels > 0) take(row.labels.data(), head.labels * sizeof(int32_t));
  return true;
}

std::vector<NumberScale> column_scales(int rows, const ColumnCounts& counts) {
  std::vector<NumberScale> out(counts.numbers);
  if (out.empty()) return out;
  std::vector<DecimalVotes> votes(out.size());
  TextRowReader reader(rows);
  for (TextRow row; reader.next(row);) {
    const SideRow side = split_columns(row.text, counts);
    for (size_t column = 0; column < votes.size(); ++column) votes[column].add(side.values[column]);
  }
  for (size_t column = 0; column < votes.size(); ++column) {
    out[column].comma_decimals = votes[column].comma_decimals();
  }
  return out;
}

}  // namespace finetune
