// When a call of attention goes to a library's fused kernels, and what they need from it.
// They (fused_attention.h) take bf16, whole sequences of which one is long. All other calls, and
// those that the library refuses, are the module's own kernels', which have the CPU's dropout
// masks.
#pragma once

#include <map>
#include <memory>

#include "ops/cuda/attention/fused_attention.h"
#include "ops/cuda/module/context.h"

namespace finetune::cuda {

class FusedAttention {
 public:
  // Null unless FINETUNE_CUDA_ATTENTION=cudnn is in the environment (`own`, the default, is
  // without) and the library can be had: else a line for the user says why not.
  static std::unique_ptr<FusedAttention> make(void (*log)(const char* line));

  std::string name() const { return library_->name(); }

  // False: the call is not theirs, and nothing is done. The same for a forward pass and its
  // backward pass, whose masks are therefore the same.
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
  // Null: the call is not theirs. With `training` both plans are there.
  Plans* plans_for(Context& context, const FusedShape& shape, bool training);
  std::unique_ptr<FusedPlan> plan(Context& context, const FusedShape& shape, bool& refused);

  std::unique_ptr<FusedLibrary> library_;
  std::map<FusedShape, Plans> plans_;  // by the forward plan's
};

}  // namespace finetune::cuda
