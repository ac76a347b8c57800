// Results on standard output, so that a full disk is an error and a reader that went away is not.
#pragma once

#include <cstddef>
#include <string_view>

namespace finetune {

// Thrown when the reader of standard output has closed it (`| head`): not an error of ours. The
// program ends in silence with the status of a SIGPIPE.
struct ReaderGone {};
constexpr int kReaderGoneCode = 128 + 13;

// Write all of `text`, and flush it. Both throw Error(model) if that fails, or ReaderGone.
void write_standard_output(std::string_view text);
void flush_standard_output();
// Writes lines for people: prose_for() says how a terminal gets them.
void write_lines(std::string_view lines);
// Returns $COLUMNS, else the terminal's width, from 40 to 120; 80 if neither is known.
size_t standard_output_columns();

}  // namespace finetune
