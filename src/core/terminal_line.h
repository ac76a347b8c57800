// One line at the bottom of a terminal on standard error, fitted to the current width.
#pragma once

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

// Shows `text`, cut to the terminal's width, in place of the previous text. The cursor stays at the
// beginning of the line, so that a terminal that reflows its lines keeps it there. When the width
// changes, the line is drawn again at once (SIGWINCH).
void draw_terminal_line(std::string_view text);
void erase_terminal_line();
// Whether the width has changed since the line was drawn.
bool terminal_was_resized();

}  // namespace finetune
