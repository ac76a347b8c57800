// For a program built without MPI: started as one of several, it executes the program with MPI.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "comm/communicator.h"
#include "core/files/files.h"

namespace finetune {
namespace {

// This process's arguments without the program's name.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> arguments;
  for (size_t at = 0; at < words.size(); at += arguments.back().size() + 1) {
    arguments.emplace_back(words.c_str() + at);
  }
  return arguments;
}

// Open MPI 2 to 5 all use this name and have the functions that the program calls. The program
// ships no MPI, because only the launcher's own library understands the launcher.
constexpr const char* kMpiLibrary = "libmpi.so.40";

[[noreturn]] void become(const fs::path& program) {
  if (!::dlopen(kMpiLibrary, RTLD_LAZY | RTLD_LOCAL)) {
    throw device_error("started as one of several processes, but Open MPI's library is not found (",
                       ::dlerror(), "); install Open MPI, or name its folder in LD_LIBRARY_PATH");
  }
  std::vector<std::string> arguments = own_arguments();
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  throw device_error(program.string(), ": cannot be started: ", std::strerror(errno));
}

}  // namespace

std::unique_ptr<Communicator> make_communicator() {
  if (!launched_in_parallel()) return make_solo_communicator();
  std::error_code error;
  const fs::path program = program_folder() / FINETUNE_MODULE_FOLDER / "finetune-mpi";
  if (fs::exists(program, error)) become(program);
  throw device_error(
      "started as one of several processes, but this program was built without MPI "
      "(-Dmpi=disabled)");
}

}  // namespace finetune
