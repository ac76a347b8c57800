// Writes and reads a checkpoint's tensors, options, labels and attributes.
#include "train/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/error.h"
#include "core/files/files.h"
#include "train/checkpoint/checkpoint_contents.h"
#include "train/checkpoint/hdf5_writer.h"
#include "train/checkpoint/sealed_file.h"
#include "weights/tensorflow/crc32c.h"

namespace finetune {
namespace {

// Integer attributes of the root: one table for writing and reading.
constexpr std::pair<const char*, int64_t CheckpointState::*> kIntegers[] = {
    {"step", &CheckpointState::step},
    {"epoch", &CheckpointState::epoch},
    {"step_in_epoch", &CheckpointState::step_in_epoch},
    {"best_step", &CheckpointState::best_step},
    {"evaluations_without_improvement", &CheckpointState::evaluations_without_improvement},
};
constexpr std::pair<const char*, double CheckpointState::*> kDoubles[] = {
    {"best_value", &CheckpointState::best_value},
};
constexpr std::pair<const char*, std::string CheckpointState::*> kTexts[] = {
    {"data_sha256", &CheckpointState::data_sha256},
    {"model_sha256", &CheckpointState::model_sha256},
    {"version", &CheckpointState::version},
};
constexpr const char* kCodePath = "code_path";   // not in every checkpoint of version 0.1.0
constexpr const char* kLoss = "loss";            // saved only if it is not empty
constexpr const char* kEvaluated = "evaluated";  // a total that is a step number

constexpr std::pair<const char*, Arena> kArenas[] = {
    {"weights", Arena::weights}, {"m", Arena::m}, {"v", Arena::v}};

uint64_t size_estimate(const CheckpointState& state, const ParameterTable& table) {
  uint64_t bytes = (1 << 20) + state.options.size();
  uint64_t longest = 1;
  for (const auto& label : state.labels) longest = std::max<uint64_t>(longest, label.size());
  bytes += longest * state.labels.size();
  bytes += 3 * uint64_t(table.count()) * sizeof(float);
  return bytes + 3 * 1024 * table.parameters().size();
}

// Reserves the blocks in the file system first: HDF5 does not handle a full disk well. If the file
// system cannot reserve, errors show up while writing.
void reserve_blocks(const fs::path& temporary, const fs::path& path, uint64_t bytes) {
  int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  int error = ::fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, off_t(bytes)) == 0 ? 0 : errno;
  ::close(descriptor);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    throw model_error(path.string(), ": cannot be written: ", std::strerror(error), " (it needs ",
                      (bytes >> 20) + 1, " MiB)");
  }
}

// HDF5 damages the heap if it runs out of memory, so this checks beforehand that there is enough.
// The probe touches no page, so it costs nothing.
void require_memory_for_hdf5() {
  constexpr size_t kBytes = size_t{32} << 20;  // several times what HDF5 needs
  void* probe = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) throw std::bad_alloc();
  ::munmap(probe, kBytes);
}

void write_state(Hdf5Writer& file, const CheckpointState& state) {
  for (auto [name, member] : kIntegers) file.write_attribute("/", name, state.*member);
  for (auto [name, member] : kDoubles) file.write_attribute("/", name, state.*member);
  for (auto [name, member] : kTexts) file.write_attribute("/", name, state.*member);
  file.write_attribute("/", kCodePath, state.code_path);
  if (!state.loss.empty()) file.write_attribute("/", kLoss, state.loss);
  file.make_group("/totals");
  for (const auto& [name, value] : state.totals) file.write_attribute("/totals", name, value);
  file.write_strings("/options", {state.options});
  file.write_strings("/labels", state.labels);
}

// The largest count of updates, epochs or evaluations: up to it, a double holds every integer.
constexpr int64_t kMostCounted = int64_t{1} << 53;

// A matching checksum does not make the counts plausible: a forged file can hold any number.
void check_counts(const CheckpointState& state, const fs::path& path) {
  for (auto [name, member] : kIntegers) {
    const int64_t least = member == &CheckpointState::best_step ? -1 : 0;  // -1: none yet
    const int64_t most = member == &CheckpointState::best_step ? state.step : kMostCounted;
    if (state.*member >= least && state.*member <= most) continue;
    throw model_error(path.string(), ": attribute ", in_quotes(name), " is ", state.*member,
                      ", which no run has");
  }
  const auto evaluated = state.totals.find(kEvaluated);
  if (evaluated == state.totals.end()) return;
  if (evaluated->second >= 0 && evaluated->second <= double(state.step)) return;
  throw model_error(path.string(), ": attribute ", in_quotes(kEvaluated), " is ", evaluated->second,
                    ", which no run has");
}

CheckpointState read_state(CheckpointContents& file, const fs::path& path) {
  CheckpointState state;
  for (auto [name, member] : kIntegers) state.*member = file.read_int("/", name);
  for (auto [name, member] : kDoubles) state.*member = file.read_double("/", name);
  for (auto [name, member] : kTexts) state.*member = file.read_text("/", name);
  for (const auto& name : file.attribute_names("/")) {
    if (name == kCodePath) state.code_path = file.read_text("/", name);
    if (name == kLoss) state.loss = file.read_text("/", name);
  }
  for (const auto& name : file.attribute_names("/totals")) {
    state.totals[name] = file.read_double("/totals", name);
  }
  std::vector<std::string> options = file.read_strings("/options");
  if (options.size() != 1) throw model_error(path.string(), ": dataset 'options' is not one text");
  state.options = std::move(options[0]);
  state.labels = file.read_strings("/labels");
  check_counts(state, path);
  return state;
}

std::string dataset_name(const char* group, const Parameter& parameter) {
  return concat("/", group, "/", parameter.name);
}

// Returns the name of the first part in which the states differ in any bit; null if none does.
const char* difference(const CheckpointState& a, const CheckpointState& b) {
  auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  auto same_total = [&](const auto& x, const auto& y) {
    return x.first == y.first && bits(x.second) == bits(y.second);
  };
  for (auto [name, member] : kIntegers) {
    if (a.*member != b.*member) return name;
  }
  for (auto [name, member] : kDoubles) {
    if (bits(a.*member) != bits(b.*member)) return name;
  }
  for (auto [name, member] : kTexts) {
    if (a.*member != b.*member) return name;
  }
  if (a.code_path != b.code_path) return kCodePath;
  if (a.loss != b.loss) return kLoss;
  if (!std::equal(a.totals.begin(), a.totals.end(), b.totals.begin(), b.totals.end(), same_total)) {
    return "totals";
  }
  if (a.options != b.options) return "options";
  return a.labels == b.labels ? nullptr : "labels";
}

std::vector<WrittenTensor> write_content(Hdf5Writer& file, const CheckpointState& state,
                                         ModelTensors& tensors) {
  const std::vector<Parameter>& parameters = tensors.table().parameters();
  std::vector<WrittenTensor> written;
  write_state(file, state);
  for (auto [group, arena] : kArenas) {
    file.make_group(concat("/", group));
    for (size_t i = 0; i < parameters.size(); ++i) {
      WrittenTensor tensor{dataset_name(group, parameters[i]), parameters[i].shape, 0};
      auto next = [&, a = arena](int64_t first, int64_t count) {
        const TensorPiece piece = rows_of(tensors.table(), a, i, first, count);
        const float* data = tensors.contents(piece);
        const size_t bytes = size_t(piece.elements.size()) * sizeof(float);
        const uint32_t crc = parallel_crc32c(reinterpret_cast<const uint8_t*>(data), bytes);
        tensor.crc32c = joined_crc32c(tensor.crc32c, crc, bytes);
        return data;
      };
      file.write_floats(tensor.name, tensor.shape, next);
      written.push_back(std::move(tensor));
    }
  }
  return written;
}

// Returns the seal of a closed file, if the file holds this state and these tensors. The tensors
// come first, so that the sealed bytes are the bytes that are compared, or are compared afterwards.
std::string seal_if_whole(const fs::path& path, const CheckpointState& state,
                          const std::vector<WrittenTensor>& tensors) {
  try {
    std::string seal = verified_seal(path, tensors);
    CheckpointContents contents(path);
    const char* part = difference(read_state(contents, path), state);
    if (part) throw model_error(path.string(), ": ", in_quotes(part), " is not as written");
    return seal;
  } catch (const Error& error) {
    std::string_view reason = error.what();
    const std::string name = concat(path.string(), ": ");
    if (reason.starts_with(name)) reason.remove_prefix(name.size());
    throw Error(error.code(), concat(name, "cannot be written: it does not read back: ", reason));
  }
}

// The error for the user: it names the final file, not the temporary one, and how to go on.
Error unwritten(const Error& error, const fs::path& temporary, const fs::path& path) {
  std::string message = error.what();
  const std::string from = temporary.string(), to = path.string();
  for (size_t at = 0; (at = message.find(from, at)) != std::string::npos; at += to.size()) {
    message.replace(at, from.size(), to);
  }
  if (error.code() == ExitCode::model) {
    message += "; --resume goes on from the newest whole checkpoint";
  }
  return Error(error.code(), message);
}

}  // namespace

int64_t evaluated_step(const CheckpointState& state) {
  auto found = state.totals.find(kEvaluated);
  return found == state.totals.end() ? -1 : int64_t(found->second);
}

void write_checkpoint(const fs::path& path, const CheckpointState& state,
                      const ParameterTable& table, const CheckpointArenas& arenas) {
  ArenaTensors tensors(table, arenas.weights, arenas.m, arenas.v);
  write_checkpoint(path, state, tensors);
}

void write_checkpoint(const fs::path& path, const CheckpointState& state, ModelTensors& tensors) {
  const fs::path directory = parent_of(path);
  uint64_t bytes = size_estimate(state, tensors.table());
  fs::path temporary = path;
  try {
    require_free_space(directory, bytes, "a checkpoint");
    require_memory_for_hdf5();
    AtomicFile atomic(path);
    temporary = atomic.temporary();
    reserve_blocks(temporary, path, bytes);
    Hdf5Writer file(temporary, kSealBytes);
    reserve_blocks(temporary, path, bytes);  // creating it gave the blocks back
    const std::vector<WrittenTensor> written = write_content(file, state, tensors);
    file.close();
    put_seal(temporary, seal_if_whole(temporary, state, written));
    atomic.commit();
  } catch (const Error& error) {
    throw unwritten(error, temporary, path);
  }
}

CheckpointState read_checkpoint_state(const fs::path& path) {
  verify_seal(path);
  CheckpointContents file(path);
  return read_state(file, path);
}

CheckpointState read_checkpoint(const fs::path& path, const ParameterTable& table,
                                const CheckpointArenas& arenas, bool verified) {
  ArenaTensors tensors(table, arenas.weights, arenas.m, arenas.v);
  return read_checkpoint(path, tensors, verified);
}

CheckpointState read_checkpoint(const fs::path& path, ModelTensors& tensors, bool verified) {
  if (!verified) verify_seal(path);
  CheckpointContents file(path);
  CheckpointState state = read_state(file, path);
  const std::vector<Parameter>& parameters = tensors.table().parameters();
  for (auto [group, arena] : kArenas) {
    if (!tensors.has(arena)) continue;
    for (size_t i = 0; i < parameters.size(); ++i) {
      auto piece = [&, a = arena](int64_t first, int64_t count) {
        return rows_of(tensors.table(), a, i, first, count);
      };
      file.read_floats(
          dataset_name(group, parameters[i]), parameters[i].shape,
          [&](int64_t first, int64_t count) { return tensors.room(piece(first, count)); },
          [&](int64_t first, int64_t count, const float* data) {
            tensors.filled(piece(first, count), data);
          });
    }
  }
  return state;
}

std::vector<CheckpointTensor> checkpoint_tensors(const fs::path& path) {
  verify_seal(path);
  CheckpointContents file(path);
  std::vector<CheckpointTensor> tensors;
  for (auto [group, arena] : kArenas) {
    for (const auto& entry : file.datasets(concat("/", group))) {
      tensors.push_back({concat(group, "/", entry.name), entry.shape});
    }
  }
  return tensors;
}

}  // namespace finetune
