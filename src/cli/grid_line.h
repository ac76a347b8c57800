// Writes the line of a sweep's grid for options that were given on the command line instead.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace finetune {

// Returns "lr = [1e-5, 3e-5] under [sweep] in GRID; finetune sweep GRID tries them all" for several
// values with commas between them. Nothing for a single value or an option that takes a list.
std::optional<std::string> grid_line_for_values(std::string_view option, std::string_view value);

// Returns the error for an option that `command` (sweep or train) does not have, if a line of
// the grid replaces it: an option of train for sweep, --param lr=1,2, --seeds 3, --n_trials 20.
// `name` is without dashes.
std::optional<std::string> grid_hint(std::string_view command, std::string_view name,
                                     std::string_view value);

}  // namespace finetune
