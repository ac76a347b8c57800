// Decides which attention calls use a library's fused kernels, and prepares their inputs. The
// library (fused_attention.h) takes bf16 and whole sequences, at least one of them long. All other
// calls, and those that the library refuses, use the module's own kernels, which have the CPU's
// dropout masks.
#pragma once

#include <map>
#include <memory>

#include "ops/cuda/attention/fused_attention.h"
#include "ops/cuda/module/context.h"

namespace finetune::cuda {

class FusedAttention {
 public:
  // Returns null unless FINETUNE_CUDA_ATTENTION=cudnn is set (the default is `own`) and the library
  // is usable; if it is not, logs a line with the reason.
  static std::unique_ptr<FusedAttention> make(void (*log)(const char* line));

  std::string name() const { return library_->name(); }

  // Both return false if the library does not handle the call; nothing is done then. Forward and
  // backward pass of a call give the same answer, so their masks agree.
  bool forward(Context& context, const AttentionShape& shape, const Dropout& dropout,
               const AnyMatrix& q, const AnyMatrix& k, const AnyMatrix& v, const AnyMatrix& out,
               Matrix lse);
  bool backward(Context& context, const AttentionShape& shape, const Dropout& dropout,
                const AnyMatrix& q, const AnyMatrix& k, const AnyMatrix& v, const AnyMatrix& out,
                Matrix lse, const AnyMatrix& dout, const AnyMatrix& dq, const AnyMatrix& dk,
                const AnyMatrix& dv);

 private:
  struct Plans {
    std::unique_ptr<FusedPlan> forward, backward;
    bool refused = false, refused_backward = false;
  };

  explicit FusedAttention(std::unique_ptr<FusedLibrary> library) : library_(std::move(library)) {}
  // Null if the library does not handle the call. With `training` both plans exist.
  Plans* plans_for(Context& context, const FusedShape& shape, bool training);
  std::unique_ptr<FusedPlan> plan(Context& context, const FusedShape& shape, bool& refused);

  std::unique_ptr<FusedLibrary> library_;
  std::map<FusedShape, Plans> plans_;  // by the forward plan's shape
};

}  // namespace finetune::cuda
