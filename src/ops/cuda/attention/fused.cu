// Prepares a call of fused attention: ragged offsets, seeds, transposes, cached plans.
#include <cstdlib>
#include <limits>
#include <vector>

#include "core/switches.h"
#include "ops/cuda/attention/attention.h"
#include "ops/cuda/attention/fused.h"
#include "ops/cuda/kernels/pack.h"
#include "ops/library_attention.h"

namespace finetune::cuda {
namespace {

struct RaggedArrays {
  int32_t *query_lengths, *key_lengths, *q, *k, *v, *out, *stats;
  int64_t *seed, *offset;
};

// One thread per sequence; empty sequences follow the last one, then the end of the offsets. `seed`
// differs for each layer and step (through the key and the step) and each micro-batch (no two have
// the same first sample).
__global__ void ragged_kernel(AttentionShape shape, Dropout dropout, FusedShape plan,
                              RaggedArrays to) {
  wait_for_earlier_kernels();
  for (int64_t b = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; b <= plan.sequences;
       b += int64_t(gridDim.x) * blockDim.x) {
    const int64_t place = b < shape.queries.count ? b : shape.queries.count;
    const int64_t next = place < shape.queries.count ? place + 1 : place;
    const int32_t query = shape.queries.offsets[place], key = shape.keys.offsets[place];
    if (b < plan.sequences) {
      to.query_lengths[b] = shape.queries.offsets[next] - query;
      to.key_lengths[b] = shape.keys.offsets[next] - key;
    }
    to.q[b] = query * int32_t(plan.q_stride);
    to.k[b] = key * int32_t(plan.k_stride);
    to.v[b] = key * int32_t(plan.v_stride);
    to.out[b] = query * int32_t(plan.out_stride);
    to.stats[b] = query * int32_t(plan.heads);
    if (b == 0 && dropout.on()) {
      dropout = dropout.taken();
      const PhiloxBlock bits =
          philox(dropout.key, {uint32_t(shape.first_head), 0, shape.samples[0], dropout.step});
      *to.seed = int64_t((uint64_t(bits[0]) | uint64_t(bits[1]) << 32) >> 1);
      *to.offset = 0;
    }
  }
}

// to (cols, rows) = x (rows, cols)^T
__global__ void turn_kernel(Matrix x, Matrix to) {
  wait_for_earlier_kernels();
  const int64_t r = blockIdx.x;
  for_columns(to.cols, [&](int64_t c) { to.row(r)[c] = x.row(c)[r]; });
}

void turn(Context& context, Matrix x, Matrix to) {
  const RowGrid grid = row_grid(to.rows, to.cols);
  launch(context, grid.blocks, grid.threads, turn_kernel, x, to);
}

// The scratch memory of one call, divided into the plan's tensors.
class Call {
 public:
  Call(Context& context, const AttentionShape& shape, const Dropout& dropout,
       const FusedShape& plan_shape, int64_t rows, const FusedPlan& plan) {
    constexpr size_t kAlign = 256;
    size_t bytes = (plan.workspace() + kAlign - 1) / kAlign * kAlign;
    std::vector<std::pair<FusedTensor, size_t>> parts;
    auto part = [&](FusedTensor t, size_t size) {
      parts.emplace_back(t, bytes);
      bytes += (size + kAlign - 1) / kAlign * kAlign;
    };
    using enum FusedTensor;
    const size_t each = size_t(plan_shape.sequences) + 1;
    for (FusedTensor t : {query_lengths, key_lengths, q_offsets, k_offsets, v_offsets, out_offsets,
                          stats_offsets}) {
      part(t, each * sizeof(int32_t));
    }
    part(seed, sizeof(int64_t));
    part(offset, sizeof(int64_t));
    part(FusedTensor::stats, size_t(rows * shape.heads) * sizeof(float));
    if (plan_shape.backward) {
      part(deltas, size_t(plan_shape.sequences * shape.heads * plan_shape.length) * sizeof(float));
    }
    workspace_ = static_cast<char*>(context.scratch(Scratch::fused, bytes));
    for (const auto& [t, begin] : parts) memory[t] = workspace_ + begin;

    auto ints = [&](FusedTensor t) { return static_cast<int32_t*>(memory[t]); };
    auto longs = [&](FusedTensor t) { return static_cast<int64_t*>(memory[t]); };
    const RaggedArrays arrays = {ints(query_lengths), ints(key_lengths), ints(q_offsets),
                                 ints(k_offsets),     ints(v_offsets),   ints(out_offsets),
                                 ints(stats_offsets), longs(seed),       longs(offset)};
    const RowGrid grid = row_grid(1, int64_t(each));
    launch(context, dim3(grid.blocks.y), grid.threads, ragged_kernel, shape, dropout, plan_shape,
           arrays);
    stats_ = {static_cast<float*>(memory[FusedTensor::stats]), rows, shape.heads, shape.heads};
  }

  void give(const AnyMatrix& q, const AnyMatrix& k, const AnyMatrix& v, const AnyMatrix& out) {
    memory[FusedTensor::q] = q.data;
    memory[FusedTensor::k] = k.data;
    memory[FusedTensor::v] = v.data;
    memory[FusedTensor::out] = out.data;
  }
  void run(Context& context, FusedPlan& plan) { plan.run(memory, workspace_, context.stream); }
  Matrix stats() const { return stats_; }  // (Tq, heads)

  FusedMemory memory;

 private:
  char* workspace_ = nullptr;
  Matrix stats_ = {};
};

// Whether plans support the call.
template <typename... Matrices>
bool fits(const AttentionShape& shape, const AnyMatrix& q, const Matrices&... others) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  auto fit = [&](const AnyMatrix& x) {
    return x.bf16 && packs(x.as<bfloat16>()) && x.rows * x.stride <= kMost;
  };
  return shape.window < 0 && !shape.bias.on() &&
         shape.queries.max_length > library_attention::kOwnLength &&
         shape.queries.max_length == shape.keys.max_length && shape.head_size % 8 == 0 &&
         shape.head_size <= kLargestHead && fit(q) && (fit(others) && ...);
}

FusedShape forward_shape(const AttentionShape& shape, const Dropout& dropout, const AnyMatrix& q,
                         const AnyMatrix& k, const AnyMatrix& v, const AnyMatrix& out) {
  return {false,
          library_attention::planned_sequences(shape.queries.count),
          library_attention::planned_length(shape.queries.max_length),
          shape.heads,
          shape.head_size,
          q.stride,
          k.stride,
          v.stride,
          out.stride,
          shape.scale,
          dropout.threshold};
}

}  // namespace

std::unique_ptr<FusedAttention> FusedAttention::make(void (*log)(const char* line)) {
  const char* requested = kCudaAttentionSwitch.value();
  if (!requested || kCudaAttentionSwitch.is("own")) return nullptr;
  if (!kCudaAttentionSwitch.is("cudnn")) {
    throw Failure(std::string(kCudaAttentionSwitch.name) + "=" + requested +
                  " is unknown (use own or cudnn)");
  }
  try {
    return std::unique_ptr<FusedAttention>(new FusedAttention(open_fused_library()));
  } catch (const std::exception& error) {
    log((std::string("warning: attention is without cuDNN: ") + error.what()).c_str());
    return nullptr;
  }
}

std::unique_ptr<FusedPlan> FusedAttention::plan(Context& context, const FusedShape& shape,
                                                bool& refused) {
  try {
    return library_->plan(shape);
  } catch (const std::exception& error) {
    refused = true;
    context.log((std::string("warning: attention of up to ") + std::to_string(shape.length) +
                 " tokens is without cuDNN: " + error.what())
                    .c_str());
    return nullptr;
  }
}

FusedAttention::Plans* FusedAttention::plans_for(Context& context, const FusedShape& shape,
                                                 bool training) {
  Plans& plans = plans_[shape];
  if (!plans.forward && !plans.refused) plans.forward = plan(context, shape, plans.refused);
  if (training && !plans.refused && !plans.backward && !plans.refused_backward) {
    FusedShape backward = shape;
    backward.backward = true;
    plans.backward = plan(context, backward, plans.refused_backward);
  }
  return plans.refused || (training && plans.refused_backward) ? nullptr : &plans;
}

bool FusedAttention::forward(Context& context, const AttentionShape& shape, const Dropout& dropout,
                             const AnyMatrix& q, const AnyMatrix& k, const AnyMatrix& v,
                             const AnyMatrix& out, Matrix lse) {
  if (!fits(shape, q, k, v, out)) return false;
  const FusedShape plan_shape = forward_shape(shape, dropout, q, k, v, out);
  Plans* plans = plans_for(context, plan_shape, lse.data != nullptr);
  if (!plans) return false;
  Call call(context, shape, dropout, plan_shape, q.rows, *plans->forward);
  call.give(q, k, v, out);
  call.run(context, *plans->forward);
  if (lse.data) turn(context, call.stats(), lse);
  return true;
}

bool FusedAttention::backward(Context& context, const AttentionShape& shape, const Dropout& dropout,
                              const AnyMatrix& q, const AnyMatrix& k, const AnyMatrix& v,
                              const AnyMatrix& out, Matrix lse, const AnyMatrix& dout,
                              const AnyMatrix& dq, const AnyMatrix& dk, const AnyMatrix& dv) {
  if (!fits(shape, q, k, v, out)) return false;
  FusedShape plan_shape = forward_shape(shape, dropout, q, k, v, out);
  Plans* plans = plans_for(context, plan_shape, true);
  if (!plans) return false;
  // The forward pass used the library, so the backward pass must too.
  if (!fits(shape, dout, dq, dk, dv) || dq.stride != q.stride || dk.stride != k.stride ||
      dv.stride != v.stride || dout.stride != out.stride) {
    throw Failure("attention's gradients have other strides than its operands");
  }
  plan_shape.backward = true;
  Call call(context, shape, dropout, plan_shape, q.rows, *plans->backward);
  call.give(q, k, v, out);
  turn(context, lse, call.stats());
  call.memory[FusedTensor::dout] = dout.data;
  call.memory[FusedTensor::dq] = dq.data;
  call.memory[FusedTensor::dk] = dk.data;
  call.memory[FusedTensor::dv] = dv.data;
  call.run(context, *plans->backward);
  return true;
}

}  // namespace finetune::cuda
