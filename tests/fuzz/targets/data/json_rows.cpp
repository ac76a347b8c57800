// JSON Lines, and JSON as one array of objects.
#include "fuzz/targets/data/row_checks.h"

namespace finetune::fuzz {
namespace {

void check_json_rows(std::string_view input) {
  for (const char* name : {"rows.jsonl", "rows.json"}) {
    const fs::path path = scratch_file(name, input);
    check_rows(path, {});
    check_rows(path, {.skip_bad_rows = true});
  }
}

const Registration kJsonRowsTarget({.name = "json_rows",
                                    .run = check_json_rows,
                                    .memory = kPackedMemory});

}  // namespace
}  // namespace finetune::fuzz
