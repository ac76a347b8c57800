// A fuzz target: a reader that gets arbitrary bytes, and the properties that must hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/text.h"

namespace finetune::fuzz {

namespace fs = std::filesystem;

// Memory that a reader may allocate at once, beside a multiple of its input.
constexpr size_t kUsualMemory = size_t{64} << 20;
// A packed file may require a window of 128 MiB.
constexpr size_t kPackedMemory = kUsualMemory + (size_t{128} << 20);

struct Target {
  const char* name;
  // Reads the input and checks the result. An Error is a valid result unless it is
  // ExitCode::internal or an error of the machine, which no input may cause.
  void (*run)(std::string_view input);
  size_t memory = kUsualMemory;
  // Repairs the checksums of `changed`, a mutation of `before` (whose checksums were right), so
  // that a fuzzer gets past them. Null: the format has none.
  void (*mend)(const std::string& before, std::string& changed) = nullptr;
};

// Registers a target with the program that it is linked to.
struct Registration {
  explicit Registration(const Target& target);
};
const std::vector<Target>& targets();

// A result that no input may cause.
struct Finding {
  std::string what;
};

// Runs the target on the input. Throws Finding.
void run_target(const Target& target, std::string_view input);

template <typename... Parts>
void require(bool holds, const Parts&... what) {
  if (!holds) throw Finding{concat(what...)};
}

// Writes a file in this process's own directory, which contains only files that this input's target
// has put there.
fs::path scratch_file(const std::string& name, std::string_view content);
const fs::path& scratch_directory();

// Splits an input into several files at lines of "--8<--"; missing files are "".
std::vector<std::string_view> parts_of(std::string_view input, size_t count);

}  // namespace finetune::fuzz
