// Rows whose label is probably wrong, as `finetune check` reports them.
#pragma once

#include "tasks/classification/check/checked_data.h"
#include "tasks/data_check.h"

namespace finetune {

// Writes what the request wants, and adds a finding with the number of rows. Errors as
// out_of_fold().
void find_label_errors(const CheckedData& data, const LabelErrorRequest& request, Findings& out);

}  // namespace finetune
