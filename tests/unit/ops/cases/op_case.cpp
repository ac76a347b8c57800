// Builds the op table's cases and their operands on a backend.
#include "op_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/text/text.h"

namespace finetune::test {

void* OpData::put(const std::string& name, const void* host, size_t bytes) const {
  auto& memory = memory_[name];
  memory = backend_.allocate(bytes);
  backend_.upload(memory.get(), host, bytes);
  return memory.get();
}

void* OpData::placed(const std::string& name) const {
  if (const auto found = memory_.find(name); found != memory_.end()) return found->second.get();
  const OpBuffer& buffer = case_.buffers.at(name);
  const std::vector<float>& values = buffer.values.get();
  if (buffer.dtype == DType::f32) {
    return put(name, values.data(), values.size() * sizeof(float));
  }
  const std::vector<bfloat16> rounded(values.begin(), values.end());
  return put(name, rounded.data(), rounded.size() * sizeof(bfloat16));
}

Tensor OpData::operator[](const std::string& name) const {
  auto found = case_.views.find(name);
  if (found == case_.views.end()) return {};
  const OpView& view = found->second;
  const OpBuffer& buffer = case_.buffers.at(view.buffer);
  const Tensor whole{placed(view.buffer), buffer.dtype, buffer.rows, buffer.stride, buffer.stride};
  return whole.columns(view.first, view.cols);
}

const int32_t* OpData::ints(const std::string& name) const {
  const auto found = case_.integers.find(name);
  if (found == case_.integers.end()) return nullptr;
  const std::string place = "int " + name;
  const auto memory = memory_.find(place);
  return static_cast<const int32_t*>(
      memory != memory_.end()
          ? memory->second.get()
          : put(place, found->second.data(), found->second.size() * sizeof(int32_t)));
}

const uint32_t* OpData::uints(const std::string& name) const {
  return reinterpret_cast<const uint32_t*>(ints(name));
}

RowNames OpData::names() const {
  return {uints("positions"), uints("samples")};
}

Dropout OpData::streamed(Dropout dropout) const {
  if (!case_.integers.contains("stream")) return dropout;
  static_assert(sizeof(DropoutStream) == 3 * sizeof(int32_t));
  dropout.key = {};  // not to be read
  dropout.step = 0;
  dropout.stream = reinterpret_cast<const DropoutStream*>(ints("stream"));
  return dropout;
}

Segments OpData::segments(const std::string& name) const {
  const std::vector<int32_t>& offsets = case_.integers.at(name);
  int64_t longest = 0;
  for (size_t i = 1; i < offsets.size(); ++i) {
    longest = std::max<int64_t>(longest, offsets[i] - offsets[i - 1]);
  }
  return {int64_t(offsets.size()) - 1, longest, ints(name)};
}

std::vector<float> OpData::buffer(const std::string& name) const {
  const OpBuffer& buffer = case_.buffers.at(name);
  std::vector<float> values(buffer.values.get().size());
  if (buffer.dtype == DType::bf16) {
    std::vector<bfloat16> rounded(values.size());
    backend_.download(rounded.data(), placed(name), rounded.size() * sizeof(bfloat16));
    std::transform(rounded.begin(), rounded.end(), values.begin(),
                   [](bfloat16 value) { return float(value); });
    return values;
  }
  backend_.download(values.data(), placed(name), values.size() * sizeof(float));
  return values;
}

std::vector<float> OpData::values(const std::string& name) const {
  return without_gaps(case_, name, buffer(case_.views.at(name).buffer));
}

std::vector<float> without_gaps(const OpCase& op_case, const std::string& name,
                                const std::vector<float>& buffer) {
  const OpView& view = op_case.views.at(name);
  const OpBuffer& shape = op_case.buffers.at(view.buffer);
  std::vector<float> out;
  out.reserve(size_t(shape.rows * view.cols));
  for (int64_t r = 0; r < shape.rows; ++r) {
    const auto row = buffer.begin() + r * shape.stride + view.first;
    out.insert(out.end(), row, row + view.cols);
  }
  return out;
}

namespace {

// Inputs of the same stream and shape are equal, and made once.
OpValues drawn(uint32_t stream, int64_t count, int64_t cols, double range) {
  static std::map<std::tuple<uint32_t, int64_t, int64_t, double>, OpValues> all;
  const auto [found, is_new] = all.try_emplace({stream, count, cols, range});
  if (!is_new) return found->second;
  std::vector<float>& values = found->second.own();
  values.reserve(size_t(count));
  for (int64_t i = 0; i < count; ++i) {
    PhiloxBlock bits = philox({stream, 0x7461626Cu}, {uint32_t(i), uint32_t(cols), 0, 0});
    double value = (2 * unit_interval(bits[0]) - 1) * range;
    values.push_back(float(std::round(value * 4096) / 4096));
  }
  return found->second;
}

OpValues nothing(size_t count) {
  static std::map<size_t, OpValues> all;
  const auto [found, is_new] = all.try_emplace(count);
  if (is_new) found->second.own().assign(count, std::numeric_limits<float>::quiet_NaN());
  return found->second;
}

}  // namespace

OpCaseMaker::OpCaseMaker(std::string op, std::string shape, double tolerance, const char* reason) {
  case_.op = std::move(op);
  case_.shape = std::move(shape);
  case_.tolerance = tolerance;
  case_.reason = reason;
}

OpCaseMaker& OpCaseMaker::input(const std::string& name, int64_t rows, int64_t cols, int64_t gap,
                                double range) {
  case_.buffers[name] = {rows, cols + gap, drawn(++stream_, rows * (cols + gap), cols, range)};
  return view(name, name, 0, cols);
}

OpCaseMaker& OpCaseMaker::constant(const std::string& name, int64_t rows, int64_t cols,
                                   float value) {
  case_.buffers[name] = {rows, cols, std::vector<float>(size_t(rows * cols), value)};
  return view(name, name, 0, cols);
}

OpCaseMaker& OpCaseMaker::result(const std::string& name, int64_t rows, int64_t cols, int64_t gap) {
  case_.buffers[name] = {rows, cols + gap, nothing(size_t(rows * (cols + gap)))};
  return view(name, name, 0, cols);
}

OpCaseMaker& OpCaseMaker::view(const std::string& name, const std::string& buffer, int64_t first,
                               int64_t cols) {
  case_.views[name] = {buffer, first, cols};
  return *this;
}

OpCaseMaker& OpCaseMaker::integers(const std::string& name, std::vector<int32_t> values) {
  case_.integers[name] = std::move(values);
  return *this;
}

OpCaseMaker& OpCaseMaker::row_names(int64_t rows) {
  std::vector<int32_t> positions, samples;
  for (int32_t r = 0; r < rows; ++r) {  // sequences of 13 tokens, samples 5, 4, 3, ... of the batch
    positions.push_back(r % 13);
    samples.push_back(std::abs(5 - r / 13));
  }
  return integers("positions", positions).integers("samples", samples);
}

OpCaseMaker& OpCaseMaker::stream(const Dropout& dropout) {
  case_.shape += " stream";
  return integers("stream",
                  {int32_t(dropout.key.low), int32_t(dropout.key.high), int32_t(dropout.step)});
}

OpCaseMaker& OpCaseMaker::work(double multiplications) {
  case_.work = multiplications;
  return *this;
}

OpCaseMaker& OpCaseMaker::run(OpRun run, std::vector<std::string> outputs) {
  case_.run = std::move(run);
  case_.outputs = std::move(outputs);
  return *this;
}

OpCaseMaker& OpCaseMaker::gradient_of(OpRun forward,
                                      std::vector<std::pair<std::string, std::string>> cotangents,
                                      std::vector<OpGradient> gradients) {
  case_.forward = std::move(forward);
  case_.cotangents = std::move(cotangents);
  case_.gradients = std::move(gradients);
  return *this;
}

OpCase in_bf16(OpCase c, const std::vector<std::string>& buffers, double tolerance,
               const char* reason) {
  for (const std::string& name : buffers) {
    const auto found = c.buffers.find(name);
    if (found == c.buffers.end()) continue;
    found->second.dtype = DType::bf16;
    for (float& value : found->second.values.own()) value = float(bfloat16(value));
    c.shape += ", " + name + " bf16";
  }
  c.tolerance = std::max(c.tolerance, tolerance);
  c.reason = reason;
  c.gradients.clear();
  c.offered = [](const Backend& backend) { return backend.activation_type() == DType::bf16; };
  return c;
}

OpCase with_sums(OpCase c, double tolerance) {
  c.tolerance = std::max(c.tolerance, tolerance);
  c.gradients.clear();
  c.offered = [offered = c.offered](const Backend& backend) {
    return backend.sums_columns() && (!offered || offered(backend));
  };
  return c;
}

double sum_tolerance(int64_t count) {
  return 0x1p-23 * (4 + std::sqrt(double(count)));
}

const std::vector<OpCase>& op_table() {
  static const std::vector<OpCase> table = [] {
    std::vector<OpCase> all;
    add_matrix_cases(all);
    add_elementwise_cases(all);
    add_row_cases(all);
    add_pair_cases(all);
    add_attention_cases(all);
    add_layer_cases(all);
    add_loss_cases(all);
    add_optimizer_cases(all);
    return all;
  }();
  return table;
}

}  // namespace finetune::test
