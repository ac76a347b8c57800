// Whether the values of a TSV are quoted, as spreadsheets and pandas write them.
#pragma once

#include <functional>

namespace finetune {

class ByteWindow;

// Returns true if quotes in the file are consistently around values. If all lines have the same
// number of values, each value that has a quote must be a whole quoted value: GLUE's files have
// unpaired quotes, which stay. If lines differ, reading the quotes must make all rows equally wide.
// `open` begins to read the file anew.
bool has_quoted_values(const std::function<ByteWindow()>& open);

}  // namespace finetune
