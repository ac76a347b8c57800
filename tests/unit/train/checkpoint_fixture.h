// Shared by the tests of checkpoints: a tiny model's arenas, a state, and errors of reading.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "core/error.h"
#include "core/files/files.h"
#include "core/numeric/philox.h"
#include "error_line.h"
#include "small_encoder.h"
#include "train/checkpoint/checkpoint.h"

namespace finetune::test {

inline EncoderConfig tiny_config() {
  return test::encoder_of(
      {.words = 50, .hidden = 16, .layers = 2, .heads = 2, .inner = 32, .positions = 8});
}

// Arenas of a tiny model, filled with every kind of bit pattern; gaps are zero as in a run.
struct Sample {
  ParameterTable table;
  std::vector<float> weights, m, v;

  explicit Sample(uint32_t seed, const EncoderConfig& config = tiny_config())
      : table(config, Head{HeadKind::sequence, 3}),
        weights(size_t(table.size())),
        m(weights),
        v(weights) {
    fill(weights, seed, 1);
    fill(m, seed, 2);
    fill(v, seed, 3);
  }
  void fill(std::vector<float>& arena, uint32_t seed, uint32_t which) {
    for (const auto& parameter : table.parameters()) {
      for (int64_t i = parameter.offset; i < parameter.offset + parameter.size(); ++i) {
        uint32_t bits = philox({seed, which}, {uint32_t(i), 0, 0, 0})[0];
        std::memcpy(&arena[size_t(i)], &bits, sizeof bits);
      }
    }
  }
  CheckpointArenas arenas() { return {weights.data(), m.data(), v.data()}; }
};

inline CheckpointState sample_state(int64_t step) {
  CheckpointState state;
  state.step = step;
  state.epoch = 2;
  state.step_in_epoch = 7;
  state.totals = {{"loss", 1e300}, {"seconds", 12.5}, {"tokens", 123456789.0}};
  state.best_value = 1.0 / 3.0;
  state.best_step = std::min<int64_t>(step, 50);
  state.evaluations_without_improvement = 1;
  state.options = "# options\nlr = 5e-05\ntext-column = [\"a\", \"Ünï\"]\n";
  state.labels = {"", "Café & bar", "x"};
  state.data_sha256 = std::string(64, 'a');
  state.model_sha256 = std::string(64, 'b');
  state.version = "0.1.0";
  state.code_path = "CPU, AVX2, fp32";
  return state;
}

inline void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// The one-line Error(model) of reading; empty if the checkpoint is accepted.
inline std::string refusal(const fs::path& path) {
  const std::string message = error_line(ExitCode::model, [&] { read_checkpoint_state(path); });
  CHECK((message.empty() || message.starts_with(path.string())));
  return message;
}

inline size_t entries(const fs::path& directory) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory)) ++count;
  return count;
}

}  // namespace finetune::test
