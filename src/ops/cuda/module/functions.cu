// The table of api.h: wraps each function of ops.h so that no exception leaves it.
#include <cstring>
#include <new>

#include "ops/cuda/module/devices.h"
#include "ops/cuda/module/functions.h"
#include "ops/cuda/module/second_stream.h"
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

// An operation comes after what the second stream does with the memory of its arguments: with that
// of its matrices, or with all where an argument does not say how much memory it is. Lists of
// numbers (indices, offsets, names) are never the second stream's.
template <typename Argument>
void settle(SecondStream& second, const Argument& argument) {
  if constexpr (std::is_convertible_v<Argument, MemoryRange>) {
    second.wait_for(argument);
  } else if constexpr (std::is_same_v<Argument, Items<Addition>> || std::is_same_v<Argument, StepSums> ||
                       std::is_same_v<Argument, Peers*> || std::is_same_v<Argument, void*> ||
                       std::is_same_v<Argument, const void*>) {
    second.join();
  }
}

// The first two may run on the second stream; fill_zero waits itself, for it knows its size.
template <auto kFunction>
constexpr bool kSettlesItself = false;
template <>
constexpr bool kSettlesItself<linear_backward_weight> = true;
template <>
constexpr bool kSettlesItself<block_square_sums> = true;
template <>
constexpr bool kSettlesItself<fill_zero> = true;

// Call<function>::of is the table's entry. It sets the device each time, because that is a property
// of the calling thread.
template <auto kFunction>
struct Call;
template <typename... Parameters, void (*kFunction)(Context&, Parameters...)>
struct Call<kFunction> {
  static int of(Context* context, Crossed<Parameters>... arguments) {
    return guarded(context->error, [&] {
      check(cudaSetDevice(context->device), "the device");
      if (context->second && !kSettlesItself<kFunction>) (settle(*context->second, arguments), ...);
      kFunction(*context, arguments...);
    });
  }
};

int create(int device, bool bf16, void (*log)(const char*), Context** context, char* text,
           size_t size) {
  std::string error;
  *context = nullptr;
  const int status = guarded(error, [&] {
    std::string problem;
    *context = new Context(usable_devices(problem).at(size_t(device)), bf16, log);
  });
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
      .allocate_on_host = Call<allocate_on_host>::of,
      .release_on_host = Call<release_on_host>::of,
      .memory_use = Call<memory_use>::of,
      .upload = Call<upload>::of,
      .download = Call<download>::of,
      .fill_zero = Call<fill_zero>::of,
      .synchronize = Call<synchronize>::of,
      .reserve_second_stream = Call<reserve_second_stream>::of,
      .reserve_scratch = Call<reserve_scratch>::of,
#define OPERATION(name, parameters, arguments) .name = Call<name>::of,
#include "ops/operations.inc"
      .device_id = Call<device_id>::of,
      .make_peer_id = Call<make_peer_id>::of,
      .connect_peers = Call<connect_peers>::of,
      .disconnect_peers = disconnect_peers,
      .exchange = Call<exchange>::of,
      .reduce = Call<reduce>::of,
      .waited_for_peers = Call<waited_for_peers>::of,
      .start_download = Call<start_download>::of,
      .finish_download = Call<finish_download>::of,
      .begin_replay = Call<begin_replay>::of,
      .end_replay = Call<end_replay>::of,
      .give_up_replay = Call<give_up_replay>::of,
      .mark = Call<mark>::of,
      .begin_beside = Call<begin_beside>::of,
      .end_beside = Call<end_beside>::of,
      .make_host_copies = Call<make_host_copies>::of,
      .drop_host_copies = drop_host_copies,
      .store_copy = Call<store_copy>::of,
      .load_copy = Call<load_copy>::of,
      .wait_for_copy = Call<wait_for_copy>::of,
      .attention_library = attention_library,
  };
  return table;
}

}  // namespace finetune::cuda
