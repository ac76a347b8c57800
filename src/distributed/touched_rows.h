// The rows of the word embedding that occur in a global batch, ascending. They are in host memory
// and in the backend's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/plan.h"
#include "ops/backend.h"

namespace finetune {

class TouchedRows {
 public:
  TouchedRows(Backend& backend, int64_t rows);
  void clear();
  void add(std::span<const int32_t> ids);  // may be called repeatedly; duplicates are fine
  void add_all();
  void complete();  // sorts and uploads

  std::span<const int32_t> within(IndexRange rows) const;
  RowList list(IndexRange rows) const;          // in backend memory
  RowList list_on_host(IndexRange rows) const;  // the same rows in host memory

 private:
  Backend& backend_;
  std::vector<int32_t> rows_;
  std::vector<bool> is_touched_;
  std::shared_ptr<void> device_;
};

}  // namespace finetune
