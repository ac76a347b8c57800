// The context's second stream: weights' gradients beside the work that follows them.
//
// What runs there comes after all work enqueued before it. Later work of the context runs beside
// it, except operations that touch memory which it reads or writes: the device lets these wait. Two
// readers count as a conflict, too, since operations do not say which operands they write. Inside a
// recording the second stream becomes a branch of the graph.
#pragma once

#include <deque>
#include <initializer_list>
#include <utility>
#include <vector>

#include "ops/cuda/module/context.h"
#include "ops/second_stream.h"

namespace finetune::cuda {

// Memory between two addresses; empty for an absent matrix.
struct MemoryRange {
  const char* begin = nullptr;
  const char* end = nullptr;

  MemoryRange(const void* data, int64_t rows, int64_t cols, int64_t stride, size_t element) {
    if (!data || rows == 0 || cols == 0) return;
    begin = static_cast<const char*>(data);
    end = begin + size_t((rows - 1) * stride + cols) * element;
  }
  template <typename T>
  MemoryRange(const MatrixOf<T>& x) : MemoryRange(x.data, x.rows, x.cols, x.stride, sizeof(T)) {}
  MemoryRange(const AnyMatrix& x)
      : MemoryRange(x.data, x.rows, x.cols, x.stride, x.bf16 ? sizeof(bfloat16) : sizeof(float)) {}
  bool meets(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
};

class SecondStream {
 public:
  explicit SecondStream(Context& context);
  ~SecondStream();  // the device must be idle
  SecondStream(const SecondStream&) = delete;
  SecondStream& operator=(const SecondStream&) = delete;

  // Makes scratch memory, in place of what there was; it never grows.
  void reserve(const SecondStreamMemory& memory);
  // Whether work with these needs of scratch memory may run here, now.
  bool has_room(size_t left, size_t right, size_t sums) const;
  bool is_current() const { return context_.stream == stream_; }
  void* scratch(Scratch use, size_t bytes) const;

  // Enqueues the operations of `work`, which touch these ranges alone.
  template <typename Work>
  void run(std::initializer_list<MemoryRange> touched, Work&& work) {
    begin();
    {
      struct Switched {
        ~Switched() { context.stream = own; }
        Context& context;
        cudaStream_t own;
      } switched{context_, std::exchange(context_.stream, stream_)};
      work();
    }
    end(touched);
  }
  bool touches(const MemoryRange& range) const;  // what the first has not waited for
  // Later work of the context's stream comes after what touches this memory here, or after all.
  void wait_for(const MemoryRange& range);
  void join();
  void forget() { pending_.clear(); }  // a recording with all of it has been discarded

 private:
  struct Piece {
    cudaEvent_t done;
    std::vector<MemoryRange> touched;
  };
  static constexpr size_t kMostPending = 16;

  void begin();
  void end(std::initializer_list<MemoryRange> touched);
  void wait_for_first(size_t pieces);
  size_t pieces_until(const MemoryRange& range) const;  // the last that touches it; 0: none does

  Context& context_;
  const cudaStream_t first_;  // the context's
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begun_ = nullptr;
  std::vector<cudaEvent_t> events_;  // used in turn; kMostPending + 1
  size_t next_ = 0;
  std::deque<Piece> pending_;  // in order, those that the first stream has not waited for
  SecondStreamMemory sizes_{{}, false};
  void* blocks_[3] = {};  // of Scratch::left, right and sums
};

}  // namespace finetune::cuda
