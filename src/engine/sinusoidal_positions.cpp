// Computes sines and cosines of positions.
#include "engine/sinusoidal_positions.h"

#include <cmath>

#include "core/text/json_value.h"

namespace finetune {
namespace {

bool wants_sines(const EncoderConfig& config) {
  if (config.architecture->model_type != "distilbert") return false;
  const JsonValue json = JsonValue::parse(config.source_json);
  return json["sinusoidal_pos_embds"].as<bool>() == true;
}

}  // namespace

void set_sinusoidal_positions(const EncoderConfig& config, const ParameterTable& table,
                              float* arena) {
  const Parameter* positions = table.find(Role::position_embeddings, ParameterPart::weight);
  if (!positions || !wants_sines(config)) return;
  const int64_t width = config.embedding_size();
  float* values = table.view(arena, *positions).f32();
  for (int64_t i = 0; i < positions->size(); ++i) {
    const int64_t column = i % width;
    const double angle =
        double(i / width) / std::pow(10000.0, double(column / 2 * 2) / double(width));
    values[i] = float(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
  }
}

}  // namespace finetune
