// A virtual machine for the pickles in PyTorch's files, which builds plain data. It knows only the
// opcodes and globals of torch's weights_only list. It cannot call anything: a pickle that names
// another global is refused.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/numeric/dtype.h"

namespace finetune {

enum class PickleSymbol : uint8_t {
  ordered_dict,
  rebuild_tensor,
  rebuild_tensor_v2,
  rebuild_parameter,
  parameter,
  size,
  storage,  // element type in dtype
  dtype,
};

struct PickleValue {
  enum class Kind : uint8_t {
    none,
    boolean,
    integer,
    big_integer,
    real,
    text,
    tuple,
    list,
    dict,
    set,
    symbol,
    storage,
    tensor
  };
  Kind kind = Kind::none;
  PickleSymbol symbol{};
  DType dtype{};
  int64_t integer = 0;  // boolean, integer
  double real = 0;
  std::string_view text;  // text: its bytes; big_integer: little-endian two's complement
  // tuple, list, set: elements; dict: key, value, key, value, ...; storage: the tuple of the
  // persistent id; tensor: the first arguments of _rebuild_tensor(_v2): storage, offset, size,
  // stride
  std::vector<const PickleValue*> items;

  const PickleValue* get(std::string_view key) const;  // a dict's value; nullptr if absent
};

// Runs one pickle. Values live as long as the Unpickler; texts point into `bytes`.
class Unpickler {
 public:
  // A checkpoint of 24 layers needs some 50,000; the limit bounds memory to a few hundred MB.
  static constexpr size_t kMostOperations = 4'000'000;

  // `file` is used in messages. The pickle begins at bytes[position].
  Unpickler(std::string file, std::string_view bytes, size_t position = 0,
            size_t most_operations = kMostOperations)
      : file_(std::move(file)),
        bytes_(bytes),
        position_(position),
        most_operations_(most_operations) {}

  const PickleValue& run();                      // Error(model) for an invalid pickle
  size_t position() const { return position_; }  // after run(): behind STOP
  // all values that run() created
  const std::deque<PickleValue>& values() const { return values_; }

 private:
  using Value = PickleValue;
  using Kind = PickleValue::Kind;

  template <typename... Parts>
  [[noreturn]] void fail(const Parts&... parts) const;

  void step(uint8_t opcode);
  std::string_view take(size_t count);
  uint64_t take_unsigned(size_t bytes);
  std::string_view take_line();

  Value& make(Kind kind);
  void push(Value* value) { stack_.push_back(value); }
  Value* pop();
  Value& top(Kind kind, std::string_view what);
  std::vector<const Value*> pop_to_mark();
  void push_tuple(size_t count);
  void push_integer(int64_t value);
  void put(uint64_t index);
  void get(uint64_t index);
  void add_items(Value& dict, const std::vector<const Value*>& items);
  void push_global();
  void push_long();
  void push_persistent();
  void construct();
  void build();

  std::string file_;
  std::string_view bytes_;
  size_t position_;
  size_t most_operations_;
  size_t opcode_at_ = 0;
  std::deque<Value> values_;
  std::vector<Value*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Value*> memo_;
};

}  // namespace finetune
