// Loads encoder, pooler and head from a weight source, and reports what was new.
#include "engine/pretrained.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>

#include "core/error.h"
#include "core/option_advice.h"
#include "core/text/counted.h"
#include "core/threads/parallel.h"
#include "weights/stored_tensor.h"

namespace finetune {
namespace {

// Whether the parameter is in the head, but was pretrained with the encoder: the dense layer and
// its norm. In some architectures these are also the masked head's first tensors.
bool is_pooler(const ParameterTable& table, const Parameter& parameter) {
  const Architecture& architecture = table.architecture();
  if (!architecture.pretrained_pooler) return false;
  const bool shared =
      architecture.module_of(Role::masked_transform) == architecture.module_of(Role::pooler);
  switch (parameter.role) {
    case Role::pooler:
    case Role::head_norm:
      return true;
    case Role::masked_transform:
    case Role::masked_norm:
      return shared;
    default:
      return false;
  }
}
bool is_task_head(const ParameterTable& table, const Parameter& parameter) {
  return parameter.head && !is_pooler(table, parameter);
}

template <typename Test>
std::vector<const Parameter*> select(const ParameterTable& table, Test test) {
  std::vector<const Parameter*> selected;
  for (const auto& parameter : table.parameters()) {
    if (test(table, parameter)) selected.push_back(&parameter);
  }
  return selected;
}

// How many of the parameters are in the file.
size_t count_present(const std::vector<const Parameter*>& parameters, const WeightSource& source) {
  return size_t(std::count_if(
      parameters.begin(), parameters.end(),
      [&](const Parameter* parameter) { return source.find(parameter->name) != nullptr; }));
}

std::string file_of(const WeightSource& source) {
  return source.path().string();
}

Error missing(const WeightSource& source, const std::vector<const Parameter*>& parameters) {
  std::vector<std::string> names;
  for (const Parameter* parameter : parameters) {
    if (!source.find(parameter->name)) names.push_back(parameter->name);
  }
  std::string others = names.size() > 1 ? concat(" (and ", names.size() - 1, " more)") : "";
  const std::string& advice = source.name_advice();
  return model_error(file_of(source), ": tensor ", in_quotes(names.at(0), 200), " is missing",
                     others, advice.empty() ? "" : ": ", advice);
}

void check_tensor(const WeightSource& source, const Parameter& parameter, std::string_view advice) {
  const WeightInfo& info = *source.find(parameter.name);
  if (info.shape != parameter.whole_shape) {
    throw model_error(file_of(source), ": tensor ", in_quotes(info.stored_name, 200), " has shape ",
                      shape_text(info.shape), ", needed is ", shape_text(parameter.whole_shape),
                      advice);
  }
  require_floating(source, info);
}

// Whether the parameter has a row for each output.
bool has_outputs(const ParameterTable& table, const Parameter& parameter) {
  return parameter.role == traits_of(table.head().kind).role;
}

// Checks a kept head; in the file it may have another number of rows.
void check_extended(const WeightSource& source, const Parameter& parameter,
                    std::span<const int32_t> head_rows) {
  FINETUNE_CHECK(parameter.whole() && int64_t(head_rows.size()) == parameter.shape[0]);
  const WeightInfo& info = *source.find(parameter.name);
  std::vector<int64_t> shape = parameter.whole_shape;
  if (!info.shape.empty()) shape[0] = info.shape[0];
  const int32_t last = *std::max_element(head_rows.begin(), head_rows.end());
  if (info.shape != shape || shape[0] <= last) {
    throw model_error(file_of(source), ": tensor ", in_quotes(info.stored_name, 200), " has shape ",
                      shape_text(info.shape), ", which is not the head of ", last + 1,
                      " labels; --reinit-head starts a new head");
  }
  require_floating(source, info);
}

std::string head_module(const ParameterTable& table) {
  return table.architecture().module_of(traits_of(table.head().kind).role);
}

// The name of the pooler: without the dense layer that some have in it.
std::string pooler_module(const ParameterTable& table) {
  const std::string dense = table.architecture().module_of(Role::pooler);
  return dense.ends_with(".dense") ? dense.substr(0, dense.rfind('.')) : dense;
}

void describe(const ParameterTable& table, const WeightSource& source, HeadPolicy policy,
              PretrainedReport& report) {
  report.lines.push_back(concat("weights: ", file_of(source), " (", source.format(), "), ",
                                counted(report.loaded.size(), "tensor")));
  if (std::string remark = source.remark(); !remark.empty()) {
    report.lines.push_back(std::move(remark));
  }
  if (report.pooler_initialized) {
    report.lines.push_back("the weights have no pooler: newly initialised");
  }
  if (policy != HeadPolicy::fitted) {
    report.lines.push_back(
        report.head_kept ? concat("the head (", head_module(table), ") of the weights is kept")
                         : concat("the head (", head_module(table), ") is newly initialised"));
  }
  if (!report.unused.known.empty()) {
    report.lines.push_back(concat("not needed: ", some_tensors(report.unused.known)));
  }
  report.warning = unknown_tensors_warning(source, report.unused);
}

// The parameters to read and to initialize, after all checks that need no values.
struct Choice {
  std::vector<const Parameter*> to_load, to_initialize;
  std::vector<const Parameter*> to_extend;  // read row by row
  bool head_kept = false;
  bool pooler_initialized = false;
};

Choice choose(const ParameterTable& table, const WeightSource& source, HeadPolicy policy,
              std::span<const int32_t> head_rows) {
  Choice choice;
  if (policy == HeadPolicy::renew_all) {
    choice.to_initialize = select(table, [](const auto&, const Parameter&) { return true; });
    return choice;
  }
  auto encoder =
      select(table, [](const auto&, const Parameter& parameter) { return !parameter.head; });
  auto pooler = select(table, is_pooler);
  auto head = select(table, is_task_head);

  choice.to_load = encoder;
  auto take = [&](const std::vector<const Parameter*>& group, bool load) {
    auto& target = load ? choice.to_load : choice.to_initialize;
    target.insert(target.end(), group.begin(), group.end());
  };
  if (count_present(encoder, source) < encoder.size()) throw missing(source, encoder);

  size_t pooler_present = count_present(pooler, source);
  if (pooler_present > 0 && pooler_present < pooler.size()) throw missing(source, pooler);
  choice.pooler_initialized = !pooler.empty() && pooler_present == 0;

  size_t head_present = count_present(head, source);
  // A masked head may have no tensors besides the pooler's.
  const bool is_there = head.empty() ? !choice.pooler_initialized : head_present > 0;
  if (policy == HeadPolicy::require && (!is_there || choice.pooler_initialized)) {
    throw model_error(file_of(source), ": has no trained head (",
                      !is_there ? head_module(table) : pooler_module(table),
                      " is missing): train the model first");
  }
  choice.head_kept = policy != HeadPolicy::renew && is_there;
  if (choice.head_kept && head_present < head.size()) throw missing(source, head);
  take(pooler, !choice.pooler_initialized);
  take(head, choice.head_kept);

  std::vector<const WeightInfo*> wanted;
  if (choice.head_kept && !head_rows.empty()) {
    for (const Parameter* parameter : head) {
      if (!has_outputs(table, *parameter)) continue;
      check_extended(source, *parameter, head_rows);
      wanted.push_back(source.find(parameter->name));
      std::erase(choice.to_load, parameter);
      choice.to_extend.push_back(parameter);
    }
  }
  for (const Parameter* parameter : choice.to_load) {
    check_tensor(source, *parameter,
                 is_task_head(table, *parameter) && policy == HeadPolicy::keep_or_new
                     ? option_advice("; --reinit-head starts a new head")
                     : "");
    wanted.push_back(source.find(parameter->name));
  }
  source.require_own_bytes(wanted);
  return choice;
}

}  // namespace

void check_pretrained(const ParameterTable& table, const WeightSource& source, HeadPolicy policy,
                      std::span<const int32_t> head_rows) {
  choose(table, source, policy, head_rows);
}

namespace {

std::unordered_set<std::string_view> names_of(const std::vector<const Parameter*>& parameters) {
  std::unordered_set<std::string_view> names;
  for (const Parameter* parameter : parameters) names.insert(parameter->name);
  return names;
}

void round_to(const float* from, int64_t count, bfloat16* to) {
  constexpr int64_t kGrain = int64_t{1} << 16;
  parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = bfloat16(from[i]);
  });
}

// Copies values to the parameter's elements from `element` on, in the parameter's own type.
void put(const float* values, int64_t count, const Parameter& parameter, int64_t element,
         float* arena) {
  float* const place = arena + parameter.offset;
  if (parameter.dtype == DType::bf16) {
    round_to(values, count, reinterpret_cast<bfloat16*>(place) + element);
  } else {
    std::copy_n(values, count, place + element);
  }
}

// Reads one tensor once, into `tensor`, and copies its slices to the arena, row by row.
void read_slices(const WeightSource& source, const std::vector<const Parameter*>& slices,
                 std::vector<float>& tensor, float* arena) {
  const Parameter& first = *slices[0];
  const int64_t cols = first.whole_shape.back();
  tensor.resize(size_t(element_count(first.whole_shape).value()));
  read_tensor(source, first.name, first.whole_shape, tensor.data());
  for (const Parameter* parameter : slices) {
    const TensorSlice& slice = parameter->slice;
    for (int64_t row = 0; row < slice.rows; ++row) {
      const float* from = tensor.data() + (slice.row + row) * cols + slice.col;
      put(from, slice.cols, *parameter, row * slice.cols, arena);
    }
  }
}

// Reads the rows of a head. Rows that the file lacks keep their values.
void read_rows(const WeightSource& source, const Parameter& parameter,
               std::span<const int32_t> head_rows, float* arena) {
  const std::vector<int64_t>& shape = source.find(parameter.name)->shape;
  std::vector<float> tensor(size_t(element_count(shape).value()));
  read_tensor(source, parameter.name, shape, tensor.data());
  const int64_t cols = int64_t(tensor.size()) / shape[0];
  for (size_t row = 0; row < head_rows.size(); ++row) {
    if (head_rows[row] < 0) continue;
    std::copy_n(tensor.data() + head_rows[row] * cols, cols,
                arena + parameter.offset + int64_t(row) * cols);
  }
}

// Reads whole fp32 tensors straight into the arena, several at a time. Tensors that are cut or
// rounded follow one by one.
void read_held(const WeightSource& source, std::vector<const Parameter*> held, float* arena) {
  // Largest first, so that threads finish together.
  std::stable_sort(held.begin(), held.end(),
                   [](const Parameter* a, const Parameter* b) { return a->size() > b->size(); });
  const auto cut = std::stable_partition(held.begin(), held.end(), [](const Parameter* p) {
    return p->whole() && p->dtype == DType::f32;
  });
  parallel_for(cut - held.begin(), [&](int64_t i) {
    const Parameter& parameter = *held[size_t(i)];
    read_tensor(source, parameter.name, parameter.shape, arena + parameter.offset);
  });
  std::map<std::string_view, std::vector<const Parameter*>> slices;
  std::vector<float> tensor;
  for (auto i = cut; i != held.end(); ++i) {
    const Parameter& p = **i;
    if (!p.whole()) {
      slices[p.name].push_back(&p);
      continue;
    }
    tensor.resize(std::max(tensor.size(), size_t(p.size())));
    read_tensor(source, p.name, p.shape, tensor.data());
    put(tensor.data(), p.size(), p, 0, arena);
  }
  for (const auto& [name, of_tensor] : slices) read_slices(source, of_tensor, tensor, arena);
}

}  // namespace

PretrainedReport load_pretrained(const ParameterTable& table, const WeightSource& source,
                                 double initializer_range, uint64_t seed, HeadPolicy policy,
                                 float* arena) {
  return load_pretrained(table, table, source, initializer_range, seed, policy, arena);
}

PretrainedReport load_pretrained(const ParameterTable& table, const ParameterTable& held,
                                 const WeightSource& source, double initializer_range,
                                 uint64_t seed, HeadPolicy policy, float* arena,
                                 std::span<const int32_t> head_rows) {
  const Choice choice = choose(table, source, policy, head_rows);
  PretrainedReport report;
  report.head_kept = choice.head_kept;
  report.pooler_initialized = choice.pooler_initialized;
  for (const auto* group : {&choice.to_load, &choice.to_extend}) {
    for (const Parameter* parameter : *group) report.loaded.push_back(parameter->name);
  }
  for (const Parameter* parameter : choice.to_initialize) {
    report.initialized.push_back(parameter->name);
  }
  const auto loaded = names_of(choice.to_load), initialized = names_of(choice.to_initialize),
             extended = names_of(choice.to_extend);
  read_held(source,
            select(held, [&](const auto&, const Parameter& p) { return loaded.contains(p.name); }),
            arena);
  for (const Parameter& parameter : held.parameters()) {
    const bool gets_rows = extended.contains(parameter.name);
    if (!gets_rows && !initialized.contains(parameter.name)) continue;
    initialize(held, parameter, initializer_range, seed, arena);
    if (gets_rows) read_rows(source, parameter, head_rows, arena);
  }
  if (policy == HeadPolicy::renew_all) {
    report.lines.push_back(concat("weights: all ", counted(report.initialized.size(), "tensor"),
                                  " are random (--reinit, --seed ", seed, ")"));
    return report;
  }
  report.unused = find_unused(table.architecture(), source, report.loaded);
  describe(table, source, policy, report);
  return report;
}

}  // namespace finetune
