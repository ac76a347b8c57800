// Sharded safetensors: the index, then the shards that it may name.
#include "fuzz/targets/weights/weight_checks.h"
#include "weights/stored_weights.h"

namespace finetune::fuzz {
namespace {

void check_shard_index(std::string_view input) {
  const auto parts = parts_of(input, 3);
  scratch_file("a.safetensors", parts[1]);
  scratch_file("b.safetensors", parts[2]);
  check_weights(open_shard_index(scratch_file("model.safetensors.index.json", parts[0]),
                                 {.base_prefix = "bert."}));
}

const Registration kShardIndexTarget({.name = "shard_index", .run = check_shard_index});

}  // namespace
}  // namespace finetune::fuzz
