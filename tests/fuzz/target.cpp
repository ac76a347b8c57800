// Runs a target on an input and decides what is a finding.
#include "fuzz/target.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <exception>
#include <stdexcept>
#include <typeinfo>

#include "core/error.h"
#include "core/files/descriptor.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/threads/parallel.h"
#include "fuzz/allocations.h"

namespace finetune::fuzz {
namespace {

// A small file may name a large vocabulary or unpack to this many times its size.
constexpr size_t kMostExpansion = 1100;
constexpr std::string_view kSeparator = "\n--8<--\n";

std::vector<Target>& all_targets() {
  static std::vector<Target> all;
  return all;
}

class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "finetune-fuzz-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
    directory_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const fs::path& directory() const { return directory_; }
  fs::path write(const std::string& name, std::string_view content) {
    fs::path path = directory_ / name;
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (file.number() < 0 || !write_all(file.number(), content)) {
      throw std::runtime_error(concat(path.string(), " cannot be written"));
    }
    return path;
  }
  void clear() {
    for (const auto& entry : fs::directory_iterator(directory_)) fs::remove_all(entry.path());
  }

 private:
  fs::path directory_;
};

Scratch& scratch() {
  static Scratch scratch;
  return scratch;
}

std::string name_of(const std::type_info& type) {
  int status = 0;
  char* name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string text = name ? name : type.name();
  ::free(name);  // NOLINT(cppcoreguidelines-no-malloc): __cxa_demangle's
  return text;
}

void require_an_answer(const Error& error) {
  const std::string_view message = error.what();
  require(error.code() != ExitCode::internal, "an internal error: ", message);
  require(error.code() != ExitCode::device, "an error of the machine: ", message);
  require(!message.empty(), "an error without a message");
}

}  // namespace

Registration::Registration(const Target& target) {
  all_targets().push_back(target);
}

const std::vector<Target>& targets() {
  return all_targets();
}

void run_target(const Target& target, std::string_view input) {
  set_threads(1);
  scratch().clear();
  const AllocationCount count;
  try {
    target.run(input);
  } catch (const Error& error) {
    require_an_answer(error);
  } catch (const std::exception& other) {
    throw Finding{concat(name_of(typeid(other)), ": ", other.what())};
  }
  discard_held_lines();
  const size_t most = target.memory + kMostExpansion * input.size();
  require(count.peak() <= most, "takes ", count.peak(), " bytes of memory for an input of ",
          input.size());
}

fs::path scratch_file(const std::string& name, std::string_view content) {
  return scratch().write(name, content);
}

const fs::path& scratch_directory() {
  return scratch().directory();
}

std::vector<std::string_view> parts_of(std::string_view input, size_t count) {
  std::vector<std::string_view> parts(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t end = i + 1 < count ? input.find(kSeparator) : std::string_view::npos;
    parts[i] = input.substr(0, end);
    if (end == std::string_view::npos) break;
    input.remove_prefix(end + kSeparator.size());
  }
  return parts;
}

}  // namespace finetune::fuzz
