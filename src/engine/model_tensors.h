// The tensors of a run's whole model, whoever has them: what its files and sums are made of.
// Nobody need have all of them: they are gone through piece by piece, on rank 0.
#pragma once

#include <string>

#include "core/numeric/dtype.h"
#include "core/numeric/index_range.h"
#include "model/parameters.h"
#include "weights/weights.h"

namespace finetune {

enum class Arena { weights, m, v };

// Elements of one whole tensor, counted in it row by row. They are whole rows, where a vector is
// one row, and of bounded size (weights/stored_tensor.h).
struct TensorPiece {
  Arena arena = Arena::weights;
  int64_t tensor = 0;  // its number in the whole model's table
  IndexRange elements;
};

class ModelTensors {
 public:
  // `table`: of the whole model, for names and shapes. It must outlive this.
  explicit ModelTensors(const ParameterTable& table) : table_(table) {}
  virtual ~ModelTensors() = default;

  const ParameterTable& table() const { return table_; }
  virtual bool has(Arena arena) const = 0;
  // Pieces come in any order; each of these is valid until the next call. What is read into `room`
  // is there for everybody who has a part of it when `filled` returns.
  virtual const float* contents(const TensorPiece& piece) = 0;
  virtual float* room(const TensorPiece& piece) = 0;
  virtual void filled(const TensorPiece& piece, const float* data) = 0;

 private:
  const ParameterTable& table_;
};

// Rows [first, first + count) of the first dimension.
TensorPiece rows_of(const ParameterTable& table, Arena arena, size_t tensor, int64_t first,
                    int64_t count);

// Whole arenas of the table in this process's memory: nothing is copied. Those that are null are
// not had.
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

// The weights as a safetensors file, and that file's sha256 (the run's weights_sha256 in f32).
void write_weights(const std::filesystem::path& path, ModelTensors& tensors, DType dtype);
std::string weights_sha256(ModelTensors& tensors);

}  // namespace finetune
