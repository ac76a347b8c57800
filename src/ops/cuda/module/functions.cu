// The table of api.h: each operation of ops.h behind a function that no exception leaves.
#include <cstring>
#include <new>

#include "ops/cuda/module/functions.h"
#include "ops/cuda/ops.h"

namespace finetune::cuda {
namespace {

template <typename Body>
int guarded(std::string& error, Body&& body) {
  try {
    body();
    return kDone;
  } catch (const Failure& failure) {
    error = failure.what();
    return failure.status;
  } catch (const std::exception& other) {
    error = other.what();
    return kFailed;
  }
}

// Call<operation>::of is what the table points at. The device is set each time: it belongs to the
// calling thread.
template <auto kOperation>
struct Call;
template <typename... Arguments, void (*kOperation)(Context&, Arguments...)>
struct Call<kOperation> {
  static int of(Context* context, Arguments... arguments) {
    return guarded(context->error, [&] {
      check(cudaSetDevice(context->device), "the device");
      kOperation(*context, arguments...);
    });
  }
};

int create(int device, bool bf16, void (*log)(const char*), Context** context, char* text,
           size_t size) {
  std::string error;
  *context = nullptr;
  const int status = guarded(error, [&] { *context = new Context(device, bf16, log); });
  if (size > 0) {
    const size_t count = std::min(error.size(), size - 1);
    std::memcpy(text, error.data(), count);
    text[count] = '\0';
  }
  return status;
}

void destroy(Context* context) {
  delete context;
}

const char* error(const Context* context) {
  return context->error.c_str();
}

const char* device_name(const Context* context) {
  return context->device_name.c_str();
}

const char* attention_library(const Context* context) {
  return context->attention_library.c_str();
}

}  // namespace

const Functions& functions() {
  static constexpr Functions table = {
      .create = create,
      .destroy = destroy,
      .error = error,
      .device_name = device_name,
      .allocate = Call<allocate>::of,
      .release = Call<release>::of,
      .memory_use = Call<memory_use>::of,
      .upload = Call<upload>::of,
      .download = Call<download>::of,
      .fill_zero = Call<fill_zero>::of,
      .synchronize = Call<synchronize>::of,
      .linear = Call<linear>::of,
      .linear_backward_input = Call<linear_backward_input>::of,
      .linear_backward_weight = Call<linear_backward_weight>::of,
      .activation = Call<activation>::of,
      .activation_backward = Call<activation_backward>::of,
      .dropout = Call<dropout>::of,
      .add = Call<add>::of,
      .gather_rows = Call<gather_rows>::of,
      .scatter_rows_add = Call<scatter_rows_add>::of,
      .scatter_rows = Call<scatter_rows>::of,
      .embed = Call<embed>::of,
      .embed_backward = Call<embed_backward>::of,
      .add_layer_norm = Call<add_layer_norm>::of,
      .add_layer_norm_backward = Call<add_layer_norm_backward>::of,
      .attention = Call<attention>::of,
      .attention_backward = Call<attention_backward>::of,
      .cross_entropy = Call<cross_entropy>::of,
      .binary_cross_entropy = Call<binary_cross_entropy>::of,
      .squared_error = Call<squared_error>::of,
      .span_cross_entropy = Call<span_cross_entropy>::of,
      .merge = Call<merge>::of,
      .merge_rows = Call<merge_rows>::of,
      .block_square_sums = Call<block_square_sums>::of,
      .adamw_rows = Call<adamw_rows>::of,
      .adamw_catch_up = Call<adamw_catch_up>::of,
      .device_id = Call<device_id>::of,
      .make_peer_id = Call<make_peer_id>::of,
      .connect_peers = Call<connect_peers>::of,
      .disconnect_peers = disconnect_peers,
      .exchange = Call<exchange>::of,
      .reduce = Call<reduce>::of,
      .waited_for_peers = Call<waited_for_peers>::of,
      .post = Call<post>::of,
      .collect = Call<collect>::of,
      .add_losses = Call<add_losses>::of,
      .step_outcome = Call<step_outcome>::of,
      .adamw_parts = Call<adamw_parts>::of,
      .begin_replay = Call<begin_replay>::of,
      .end_replay = Call<end_replay>::of,
      .give_up_replay = Call<give_up_replay>::of,
      .mark = Call<mark>::of,
      .begin_beside = Call<begin_beside>::of,
      .end_beside = Call<end_beside>::of,
      .attention_library = attention_library,
  };
  return table;
}

}  // namespace finetune::cuda
