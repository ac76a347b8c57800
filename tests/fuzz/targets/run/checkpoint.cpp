// A run's checkpoint, behind its seal: read for going on, for `inspect`, and into a model's arenas.
#include "train/checkpoint/checkpoint.h"

#include "core/sha256.h"
#include "fuzz/target.h"
#include "fuzz/targets/run/tiny_checkpoint.h"
#include "train/checkpoint/sealed_file.h"
#include "unit/weights/hdf5_sums.h"

namespace finetune::fuzz {
namespace {

void check_checkpoint(std::string_view input) {
  const fs::path path = scratch_file("step-00000100.h5", input);
  const CheckpointState state = read_checkpoint_state(path);
  require(state.step >= 0 && state.best_step <= state.step && evaluated_step(state) <= state.step,
          "a state that no run has");
  for (const CheckpointTensor& tensor : checkpoint_tensors(path)) {
    for (int64_t extent : tensor.shape)
      require(extent >= 0, in_quotes(tensor.name), " has no size");
  }
  static TinyModel model;
  const CheckpointState again = read_checkpoint(path, model.table, model.arenas());
  require(
      again.step == state.step && again.options == state.options && again.labels == state.labels,
      "a checkpoint reads in two ways");
}

void mend_checkpoint(const std::string& before, std::string& changed) {
  if (changed.size() < kSealBytes) return;
  test::mend_sums(before, changed);
  constexpr size_t kBlock = size_t{1} << 20;
  std::string sums;
  for (size_t at = kSealBytes; at < changed.size(); at += kBlock) {
    sums += sha256_of(std::string_view(changed).substr(at, kBlock));
  }
  std::string seal = concat("finetune checkpoint, format 1\nbytes ", changed.size(),
                            "\nsha256 of 1 MiB blocks ", sha256_of(sums), "\n");
  seal.resize(kSealBytes, '\n');
  changed.replace(0, kSealBytes, seal);
}

const Registration kCheckpointTarget({.name = "checkpoint",
                                      .run = check_checkpoint,
                                      .mend = mend_checkpoint});

}  // namespace
}  // namespace finetune::fuzz
