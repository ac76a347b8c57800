// Text for a terminal: prose broken at blanks, and one line at the bottom of standard error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace finetune {

// Whether standard error is a terminal that understands control sequences.
bool has_terminal();
// Whether it may also use colours: $NO_COLOR is unset or empty.
bool has_colors();
// The current number of columns of the terminal at this descriptor, or at standard error; 80 if
// unknown.
int terminal_columns();
int terminal_columns(int descriptor);
// 0 if this is not a terminal, or its width is unknown, as of mpirun's.
int known_columns(int descriptor);

// `line` and then `text`, broken at blanks so that each line ends before `columns` (a longer word
// stays whole). Further lines begin at column `indent`. Ends with a line end.
std::string wrapped(std::string line, std::string_view text, size_t indent, size_t columns);

// A shell command, broken at blanks so that it can still be pasted: each line but the last ends
// with a backslash, before `columns` if its words allow that, and the further lines begin at column
// `indent`. Options keep their values beside them where they fit; quoted text stays whole. Without
// a line end.
std::string folded_command(std::string_view command, size_t indent, size_t columns);

// Lines of text for the stream at this descriptor. On a terminal each line of prose is broken at
// blanks to its width (at least 40 columns), and its further lines begin with two blanks.
// Elsewhere, and if the width is unknown, the text is as it is. Two blanks in a row separate the
// cells of a table's line: of a wide one, the last cell is broken, and goes on below its beginning,
// or as a block below the line if it has a word too long for that. A last cell that is a command of
// ours is folded.
std::string prose_for(int descriptor, std::string_view lines);

// Shows `text`, cut to the terminal's width, in place of the previous text. The cursor stays at the
// beginning of the line, so that a terminal that reflows its lines keeps it there. When the width
// changes, the line is drawn again at once (SIGWINCH).
void draw_terminal_line(std::string_view text);
void erase_terminal_line();
// Whether the width has changed since the line was drawn.
bool terminal_was_resized();

}  // namespace finetune
