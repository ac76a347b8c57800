// Computes the angles of rotary positions, and uploads their tables.
#include "model/passes/rotary_tables.h"

#include <algorithm>
#include <cmath>

namespace finetune {
namespace {

int64_t positions_of(const EncoderConfig& config, int64_t tokens) {
  return std::min(tokens, config.max_length());
}

// Global layers' table is first; local layers' follows if there are any.
bool has_local(const EncoderConfig& config) {
  return std::find(config.rotary.local.begin(), config.rotary.local.end(), true) !=
         config.rotary.local.end();
}

}  // namespace

// Cosine and sine in double are rounded once: the same bits with any math library.
std::vector<float> rotary_table(int64_t positions, int64_t head_size, double theta) {
  const int64_t half = head_size / 2;
  std::vector<float> table(size_t(positions * head_size));
  for (int64_t c = 0; c < half; ++c) {
    const float exponent = float(2 * c) / float(head_size);
    const float frequency = 1.0f / float(std::pow(theta, double(exponent)));
    for (int64_t p = 0; p < positions; ++p) {
      const double angle = double(float(p) * frequency);
      table[size_t(p * head_size + c)] = float(std::cos(angle));
      table[size_t(p * head_size + half + c)] = float(std::sin(angle));
    }
  }
  return table;
}

RotaryTables::RotaryTables(Backend& backend, const EncoderConfig& config, int64_t tokens) {
  if (!config.is_rotary() || tokens == 0) return;
  positions_ = positions_of(config, tokens);
  std::vector<float> tables = rotary_table(positions_, config.head_size(), config.rotary.theta);
  if (has_local(config)) {
    const std::vector<float> local =
        rotary_table(positions_, config.head_size(), config.rotary.local_theta);
    tables.insert(tables.end(), local.begin(), local.end());
  }
  memory_ = backend.allocate(tables.size() * sizeof(float));
  backend.upload(memory_.get(), tables.data(), tables.size() * sizeof(float));
}

int64_t RotaryTables::floats(const EncoderConfig& config, int64_t tokens) {
  if (!config.is_rotary()) return 0;
  return positions_of(config, tokens) * config.head_size() * (has_local(config) ? 2 : 1);
}

Tensor RotaryTables::of_layer(const EncoderConfig& config, int64_t layer) const {
  if (!memory_) return {};
  const int64_t skipped =
      config.rotary.is_local(layer) ? positions_ * config.head_size() : int64_t{0};
  return matrix(static_cast<float*>(memory_.get()) + skipped, positions_, config.head_size());
}

}  // namespace finetune
