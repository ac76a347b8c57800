// Executes pickle opcodes on a stack of plain values. The opcodes are those of CPython's
// Lib/pickletools.py, protocol 2.
#include "weights/torch/pickle.h"

#include <bit>
#include <cstring>
#include <optional>

#include "core/error.h"

namespace finetune {
namespace {

// A torch.Size copies its tuple. Many copies of a large tuple would need much memory, which the
// limit on operations alone does not bound.
constexpr size_t kMostDimensions = 64;

struct Global {
  std::string_view module;
  std::string_view name;
  PickleSymbol symbol;
  DType dtype = DType::f32;
};

constexpr Global kGlobals[] = {
    {"collections", "OrderedDict", PickleSymbol::ordered_dict},
    {"torch._utils", "_rebuild_tensor", PickleSymbol::rebuild_tensor},
    {"torch._utils", "_rebuild_tensor_v2", PickleSymbol::rebuild_tensor_v2},
    {"torch._utils", "_rebuild_parameter", PickleSymbol::rebuild_parameter},
    {"torch.nn.parameter", "Parameter", PickleSymbol::parameter},
    {"torch", "Size", PickleSymbol::size},
    {"torch", "FloatStorage", PickleSymbol::storage, DType::f32},
    {"torch", "HalfStorage", PickleSymbol::storage, DType::f16},
    {"torch", "BFloat16Storage", PickleSymbol::storage, DType::bf16},
    {"torch", "DoubleStorage", PickleSymbol::storage, DType::f64},
    {"torch", "LongStorage", PickleSymbol::storage, DType::i64},
    {"torch", "IntStorage", PickleSymbol::storage, DType::i32},
    {"torch", "ByteStorage", PickleSymbol::storage, DType::u8},
    {"torch", "BoolStorage", PickleSymbol::storage, DType::u8},
    {"torch", "float32", PickleSymbol::dtype, DType::f32},
    {"torch", "float16", PickleSymbol::dtype, DType::f16},
    {"torch", "bfloat16", PickleSymbol::dtype, DType::bf16},
    {"torch", "float64", PickleSymbol::dtype, DType::f64},
    {"torch", "int64", PickleSymbol::dtype, DType::i64},
    {"torch", "int32", PickleSymbol::dtype, DType::i32},
    {"torch", "uint8", PickleSymbol::dtype, DType::u8},
    {"torch", "bool", PickleSymbol::dtype, DType::u8},
};

}  // namespace

const PickleValue* PickleValue::get(std::string_view key) const {
  if (kind != Kind::dict) return nullptr;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i]->kind == Kind::text && items[i]->text == key) return items[i + 1];
  }
  return nullptr;
}

template <typename... Parts>
void Unpickler::fail(const Parts&... parts) const {
  throw model_error(file_, ": pickle at byte ", opcode_at_, ": ", parts...);
}

const PickleValue& Unpickler::run() {
  for (size_t operations = 0;; ++operations) {
    opcode_at_ = position_;
    if (operations == most_operations_) fail("more operations than any checkpoint needs");
    uint8_t opcode = uint8_t(take(1)[0]);
    if (opcode == '.') {
      Value* result = pop();
      if (!stack_.empty() || !marks_.empty()) fail("values are left over at its end");
      return *result;
    }
    step(opcode);
  }
}

void Unpickler::step(uint8_t opcode) {
  switch (opcode) {
    case 0x80: {  // PROTO
      uint64_t protocol = take_unsigned(1);
      if (protocol != 2) fail("protocol ", protocol, " instead of 2");
      return;
    }
    case 'c':
      return push_global();
    case 'R':
    case 0x81:
      return construct();  // REDUCE, NEWOBJ
    case 'b':
      return build();
    case '(':
      marks_.push_back(stack_.size());
      return;
    case 't': {  // TUPLE
      std::vector<const Value*> items = pop_to_mark();
      make(Kind::tuple).items = std::move(items);
      return;
    }
    case 0x85:
      return push_tuple(1);
    case 0x86:
      return push_tuple(2);
    case 0x87:
      return push_tuple(3);
    case ')':
      return push_tuple(0);
    case ']':
      make(Kind::list);
      return;
    case '}':
      make(Kind::dict);
      return;
    case 0x8F:
      make(Kind::set);
      return;
    case 'a': {  // APPEND
      Value* item = pop();
      top(Kind::list, "APPEND").items.push_back(item);
      return;
    }
    case 'e': {  // APPENDS
      std::vector<const Value*> items = pop_to_mark();
      auto& list = top(Kind::list, "APPENDS").items;
      list.insert(list.end(), items.begin(), items.end());
      return;
    }
    case 's': {  // SETITEM
      Value* value = pop();
      Value* key = pop();
      return add_items(top(Kind::dict, "SETITEM"), {key, value});
    }
    case 'u': {  // SETITEMS
      std::vector<const Value*> items = pop_to_mark();
      return add_items(top(Kind::dict, "SETITEMS"), items);
    }
    case 'N':
      make(Kind::none);
      return;
    case 0x88:
      make(Kind::boolean).integer = 1;
      return;
    case 0x89:
      make(Kind::boolean).integer = 0;
      return;
    case 'J':
      return push_integer(int32_t(take_unsigned(4)));
    case 'K':
      return push_integer(int64_t(take_unsigned(1)));
    case 'M':
      return push_integer(int64_t(take_unsigned(2)));
    case 'G': {  // BINFLOAT, big-endian
      std::string_view bytes = take(8);
      uint64_t bits = 0;
      for (char byte : bytes) bits = bits << 8 | uint8_t(byte);
      make(Kind::real).real = std::bit_cast<double>(bits);
      return;
    }
    case 0x8A:
      return push_long();
    case 'X':    // BINUNICODE
    case 'U': {  // SHORT_BINSTRING
      uint64_t length = take_unsigned(opcode == 'X' ? 4 : 1);
      std::string_view text = take(length);
      make(Kind::text).text = text;
      return;
    }
    case 'h':
      return get(take_unsigned(1));
    case 'j':
      return get(take_unsigned(4));
    case 'q':
      return put(take_unsigned(1));
    case 'r':
      return put(take_unsigned(4));
    case 'Q':
      return push_persistent();
    default:
      fail("opcode ", int(opcode), " does not occur in weights: refused");
  }
}

std::string_view Unpickler::take(size_t count) {
  if (position_ > bytes_.size() || count > bytes_.size() - position_) {
    fail("the file ends inside it (truncated?)");
  }
  std::string_view taken = bytes_.substr(position_, count);
  position_ += count;
  return taken;
}

uint64_t Unpickler::take_unsigned(size_t bytes) {
  std::string_view taken = take(bytes);
  uint64_t value = 0;
  std::memcpy(&value, taken.data(), bytes);
  return value;
}

std::string_view Unpickler::take_line() {
  size_t end = bytes_.substr(0, std::min(bytes_.size(), position_ + 1000)).find('\n', position_);
  if (end == std::string_view::npos) fail("a global without a name");
  std::string_view line = bytes_.substr(position_, end - position_);
  position_ = end + 1;
  return line;
}

PickleValue& Unpickler::make(Kind kind) {
  Value& value = values_.emplace_back();
  value.kind = kind;
  push(&value);
  return value;
}

PickleValue* Unpickler::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("its stack is empty");
  Value* value = stack_.back();
  stack_.pop_back();
  return value;
}

PickleValue& Unpickler::top(Kind kind, std::string_view what) {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()) || stack_.back()->kind != kind) {
    fail(what, " without its container");
  }
  return *stack_.back();
}

std::vector<const PickleValue*> Unpickler::pop_to_mark() {
  if (marks_.empty()) fail("no mark on its stack");
  std::vector<const Value*> items(stack_.begin() + ptrdiff_t(marks_.back()), stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return items;
}

void Unpickler::push_tuple(size_t count) {
  std::vector<const Value*> items(count);
  for (size_t i = count; i-- > 0;) items[i] = pop();
  make(Kind::tuple).items = std::move(items);
}

void Unpickler::push_integer(int64_t value) {
  make(Kind::integer).integer = value;
}

void Unpickler::put(uint64_t index) {
  Value* value = pop();
  memo_[index] = value;
  push(value);
}

void Unpickler::get(uint64_t index) {
  auto found = memo_.find(index);
  if (found == memo_.end()) fail("memo ", index, " was never set");
  push(found->second);
}

void Unpickler::add_items(Value& dict, const std::vector<const Value*>& items) {
  if (items.size() % 2 != 0) fail("a key without a value");
  dict.items.insert(dict.items.end(), items.begin(), items.end());
}

void Unpickler::push_global() {
  std::string_view module = take_line();
  std::string_view name = take_line();
  for (const Global& global : kGlobals) {
    if (global.module == module && global.name == name) {
      Value& value = make(Kind::symbol);
      value.symbol = global.symbol;
      value.dtype = global.dtype;
      return;
    }
  }
  fail("names ", in_quotes(concat(module, ".", name)),
       ", which weights do not need: refused, nothing was executed");
}

void Unpickler::push_long() {
  std::string_view bytes = take(take_unsigned(1));
  if (bytes.size() > 8) {
    make(Kind::big_integer).text = bytes;
    return;
  }
  uint64_t value = 0;
  if (!bytes.empty()) {
    std::memcpy(&value, bytes.data(), bytes.size());
    const unsigned unused = unsigned(64 - 8 * bytes.size());
    value = uint64_t(int64_t(value << unused) >> unused);  // the top bit is the sign
  }
  push_integer(int64_t(value));
}

// ('storage', type, key, location, number of elements[, view])
void Unpickler::push_persistent() {
  Value* id = pop();
  bool valid = id->kind == Kind::tuple && (id->items.size() == 5 || id->items.size() == 6) &&
               id->items[0]->kind == Kind::text && id->items[0]->text == "storage" &&
               id->items[1]->kind == Kind::symbol &&
               id->items[1]->symbol == PickleSymbol::storage && id->items[2]->kind == Kind::text &&
               id->items[4]->kind == Kind::integer && id->items[4]->integer >= 0;
  if (!valid) fail("a persistent id that is not a storage");
  Value& storage = make(Kind::storage);
  storage.dtype = id->items[1]->dtype;
  storage.items = id->items;
}

// REDUCE and NEWOBJ: applies a symbol to a tuple of arguments.
void Unpickler::construct() {
  Value* arguments = pop();
  Value* symbol = pop();
  if (arguments->kind != Kind::tuple || symbol->kind != Kind::symbol) {
    fail("something other than a known class is built: refused");
  }
  const auto& items = arguments->items;
  switch (symbol->symbol) {
    case PickleSymbol::ordered_dict:
      if (!items.empty()) fail("an OrderedDict with arguments");
      make(Kind::dict);
      return;
    case PickleSymbol::rebuild_tensor:
    case PickleSymbol::rebuild_tensor_v2:
      if (items.size() < 4 || items[0]->kind != Kind::storage) fail("a tensor without a storage");
      make(Kind::tensor).items.assign(items.begin(), items.begin() + 4);
      return;
    case PickleSymbol::rebuild_parameter:
    case PickleSymbol::parameter:
      if (items.empty() || items[0]->kind != Kind::tensor) fail("a Parameter without a tensor");
      make(Kind::tensor).items = items[0]->items;
      return;
    case PickleSymbol::size:
      if (items.size() != 1 || items[0]->kind != Kind::tuple) fail("a torch.Size without a tuple");
      if (items[0]->items.size() > kMostDimensions) {
        fail("a torch.Size of ", items[0]->items.size(), " dimensions");
      }
      make(Kind::tuple).items = items[0]->items;
      return;
    case PickleSymbol::storage:
    case PickleSymbol::dtype:
      break;
  }
  fail("a storage or dtype is called: refused");
}

// Attributes (an OrderedDict's _metadata, a tensor's hooks) are irrelevant to weights.
void Unpickler::build() {
  pop();
  if (stack_.empty() ||
      (stack_.back()->kind != Kind::dict && stack_.back()->kind != Kind::tensor)) {
    fail("attributes of something that is neither a dict nor a tensor");
  }
}

}  // namespace finetune
