// A fuzz target: a reader that is given any bytes, and what must hold whatever they are.
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

// What a reader may allocate at once, beside a multiple of its input.
constexpr size_t kUsualMemory = size_t{64} << 20;
// A packed file may ask for a window of 128 MiB.
constexpr size_t kPackedMemory = kUsualMemory + (size_t{128} << 20);

struct Target {
  const char* name;
  // Reads the input, and checks what comes of it. An Error is an answer, unless it is one of the
  // program itself (ExitCode::internal) or of the machine: no input is to blame for these.
  void (*run)(std::string_view input);
  size_t memory = kUsualMemory;
  // Makes the checksums of `changed`, which was `before` with its checksums right, right again, so
  // that a fuzzer gets past them. Null: the format has none.
  void (*mend)(const std::string& before, std::string& changed) = nullptr;
};

// Adds a target to those of the program it is linked to: one of libFuzzer's, all of the replay's.
struct Registration {
  explicit Registration(const Target& target);
};
const std::vector<Target>& targets();

// Something that no input may cause.
struct Finding {
  std::string what;
};

// Gives the input to the target. Throws Finding.
void run_target(const Target& target, std::string_view input);

template <typename... Parts>
void require(bool holds, const Parts&... what) {
  if (!holds) throw Finding{concat(what...)};
}

// A file with this content in a directory of this process's own, which holds nothing else but what
// this input's target has put there.
fs::path scratch_file(const std::string& name, std::string_view content);
const fs::path& scratch_directory();

// An input of several files: they lie between lines of "--8<--". Of those that are not there, "".
std::vector<std::string_view> parts_of(std::string_view input, size_t count);

}  // namespace finetune::fuzz
