// Forks to the second stream and joins it, by events.
#include "ops/cuda/kernels/matmul.h"
#include "ops/cuda/module/second_stream.h"
#include "ops/cuda/ops.h"

namespace finetune::cuda {

SecondStream::SecondStream(Context& context) : context_(context), first_(context.stream) {
  constexpr const char* kWhat = "the second stream";
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), kWhat);
  check(cudaEventCreateWithFlags(&begun_, cudaEventDisableTiming), kWhat);
  events_.resize(kMostPending + 1);
  for (cudaEvent_t& event : events_) {
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), kWhat);
  }
  context.matmul->add_stream(context.memory, stream_);
}

SecondStream::~SecondStream() {
  if (stream_) cudaStreamSynchronize(stream_);
  for (cudaEvent_t event : events_) {
    if (event) cudaEventDestroy(event);
  }
  if (begun_) cudaEventDestroy(begun_);
  if (stream_) cudaStreamDestroy(stream_);
}

void SecondStream::reserve(const SecondStreamMemory& memory) {
  const int64_t bytes[] = {memory.rounded, memory.rounded, memory.sums};
  sizes_ = {{}, false};  // until all blocks are there
  for (size_t i = 0; i < std::size(blocks_); ++i) {
    if (blocks_[i]) {
      context_.wait("the second stream");  // its kernels may still read the old memory
      context_.memory.release(std::exchange(blocks_[i], nullptr));
    }
    if (bytes[i] > 0) blocks_[i] = context_.allocate(size_t(bytes[i]), "scratch memory");
  }
  sizes_ = memory;
}

bool SecondStream::has_room(size_t left, size_t right, size_t sums) const {
  return context_.stream == first_ && left <= size_t(sizes_.rounded) &&
         right <= size_t(sizes_.rounded) && sums <= size_t(sizes_.sums);
}

void* SecondStream::scratch(Scratch use, size_t bytes) const {
  const bool sums = use == Scratch::sums;
  if (!(sums || use == Scratch::left || use == Scratch::right) ||
      bytes > size_t(sums ? sizes_.sums : sizes_.rounded)) {
    throw Failure("the second stream has no such scratch memory");
  }
  return blocks_[sums ? 2 : use == Scratch::right];
}

void SecondStream::begin() {
  check(cudaEventRecord(begun_, first_), "the second stream");
  check(cudaStreamWaitEvent(stream_, begun_), "the second stream");
}

void SecondStream::end(std::initializer_list<MemoryRange> touched) {
  if (pending_.size() == kMostPending) wait_for_first(1);
  const cudaEvent_t done = events_[next_++ % events_.size()];
  check(cudaEventRecord(done, stream_), "the second stream");
  pending_.push_back({done, touched});
}

void SecondStream::wait_for_first(size_t pieces) {
  if (context_.stream != first_) throw Failure("the second stream is waited for elsewhere");
  check(cudaStreamWaitEvent(context_.stream, pending_[pieces - 1].done), "the second stream");
  pending_.erase(pending_.begin(), pending_.begin() + int64_t(pieces));
}

size_t SecondStream::pieces_until(const MemoryRange& range) const {
  for (size_t i = pending_.size(); i > 0; --i) {
    for (const MemoryRange& touched : pending_[i - 1].touched) {
      if (touched.meets(range)) return i;
    }
  }
  return 0;
}

bool SecondStream::touches(const MemoryRange& range) const {
  return pieces_until(range) > 0;
}

void SecondStream::wait_for(const MemoryRange& range) {
  if (const size_t pieces = pieces_until(range); pieces > 0) wait_for_first(pieces);
}

void SecondStream::join() {
  if (!pending_.empty()) wait_for_first(pending_.size());
}

void reserve_second_stream(Context& context, SecondStreamLimits most) {
  if (!context.second) context.second = std::make_unique<SecondStream>(context);
  context.second->reserve(SecondStreamMemory(most, context.bf16));
}

}  // namespace finetune::cuda
