// Detects whether the values of a TSV are quoted, as spreadsheets and pandas write them.
#pragma once

#include <functional>

namespace finetune {

class ByteWindow;

// Returns true if the file uses quotes consistently around values. If all lines have the same
// number of values, each value that contains a quote must be a whole quoted value, because GLUE's
// files have unpaired quotes that must stay. If widths differ, reading the quotes must make all
// rows equally wide. `open` opens the file again from its beginning.
bool has_quoted_values(const std::function<ByteWindow()>& open);

}  // namespace finetune
