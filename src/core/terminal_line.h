// The one line at the foot of a terminal on standard error, as wide as the terminal is now.
#pragma once

#include <string_view>

namespace finetune {

// Standard error is a terminal that understands control sequences.
bool has_terminal();
// And may have colours: $NO_COLOR is not set, or empty.
bool has_colors();
// Its columns now; 80 where it does not say.
int terminal_columns();

// Shows `text`, cut to the terminal, in place of what was shown. The cursor stays at the line's
// beginning, where it is still after a terminal has laid its lines out anew for another width. When
// the width changes the line is cut and drawn again at once (SIGWINCH).
void draw_terminal_line(std::string_view text);
void erase_terminal_line();
// The width has changed since the line was drawn.
bool terminal_was_resized();

}  // namespace finetune
