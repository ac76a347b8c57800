// Gives rank 0 all tensors of a run's model, piece by piece, to write files and checksums of them.
// The processes may each hold a part: no process needs memory for all tensors.
#pragma once

#include <string>

#include "core/numeric/dtype.h"
#include "core/numeric/index_range.h"
#include "model/parameters.h"
#include "weights/weights.h"

namespace finetune {

enum class Arena { weights, m, v };

// A range of one tensor's elements, counted row by row: whole rows, or elements of a vector. Its
// size is bounded (slab_rows, weights/stored_tensor.h).
struct TensorPiece {
  Arena arena = Arena::weights;
  int64_t tensor = 0;  // its number in the whole model's table
  IndexRange elements;
};

class ModelTensors {
 public:
  // `table` describes the whole model: names and shapes. It must outlive this.
  explicit ModelTensors(const ParameterTable& table) : table_(table) {}
  virtual ~ModelTensors() = default;

  const ParameterTable& table() const { return table_; }
  virtual bool has(Arena arena) const = 0;
  // Pieces come in any order; each pointer is valid until the next call. To set a piece, write it
  // to room() and call filled(), which passes it to every process that holds a part of it.
  virtual const float* contents(const TensorPiece& piece) = 0;
  virtual float* room(const TensorPiece& piece) = 0;
  virtual void filled(const TensorPiece& piece, const float* data) = 0;

 private:
  const ParameterTable& table_;
};

// Rows [first, first + count) of the first dimension.
TensorPiece rows_of(const ParameterTable& table, Arena arena, size_t tensor, int64_t first,
                    int64_t count);

// Whole arenas of the table in this process's memory, used without a copy. has() is false for an
// arena that is null.
class ArenaTensors final : public ModelTensors {
 public:
  ArenaTensors(const ParameterTable& table, float* weights, float* m = nullptr, float* v = nullptr)
      : ModelTensors(table), arenas_{weights, m, v} {}

  bool has(Arena arena) const override { return arenas_[size_t(arena)] != nullptr; }
  const float* contents(const TensorPiece& piece) override { return room(piece); }
  float* room(const TensorPiece& piece) override {
    const Parameter& parameter = table().parameters()[size_t(piece.tensor)];
    return arenas_[size_t(piece.arena)] + parameter.offset + piece.elements.begin;
  }
  void filled(const TensorPiece&, const float*) override {}

 private:
  float* arenas_[3];
};

// Names and shapes of the table's tensors, in its order.
std::vector<WeightShape> weight_shapes(const ParameterTable& table);

// Writes the weights as a safetensors file. weights_sha256: the sha256 of that file in f32.
void write_weights(const std::filesystem::path& path, ModelTensors& tensors, DType dtype);
std::string weights_sha256(ModelTensors& tensors);

}  // namespace finetune
