// Finds rows whose label may be wrong, for the report of `finetune check`.
#pragma once

#include "tasks/classification/check/checked_data.h"
#include "tasks/data_check.h"

namespace finetune {

// Writes the files that the request asks for, and adds a finding with the number of rows. Throws as
// out_of_fold() does.
void find_label_errors(const CheckedData& data, const LabelErrorRequest& request, Findings& out);

}  // namespace finetune
