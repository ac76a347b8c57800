// Results on standard output, so that a full disk is an error and a reader that went away is not.
#pragma once

#include <cstddef>
#include <string_view>

namespace finetune {

// Thrown when the reader of standard output has closed it (`| head`): not an error of ours. The
// program ends in silence with the status of a SIGPIPE.
struct ReaderGone {};
constexpr int kReaderGoneCode = 128 + 13;

// All of `text`, then flushed if asked. Error(model) if it cannot be written, or ReaderGone.
void write_standard_output(std::string_view text);
void flush_standard_output();
// $COLUMNS, else the terminal's width, at most 120; 80 where neither is known.
size_t standard_output_columns();

}  // namespace finetune
