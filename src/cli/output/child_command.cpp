// Starts this program again, with nameless files for its input and outputs.
#include "cli/output/child_command.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/failure.h"
#include "core/files/descriptor.h"
#include "core/files/files.h"
#include "core/files/text_file.h"
#include "core/text/text.h"

namespace finetune {
namespace {

Descriptor nameless_file(std::string_view content = {}) {
  Descriptor file(::memfd_create("command", MFD_CLOEXEC));
  if (file.number() < 0) throw device_error("memory of a command: ", start_failure(errno));
  if (!write_all(file.number(), content) || ::lseek(file.number(), 0, SEEK_SET) != 0) {
    throw device_error("memory of a command: ", start_failure(errno));
  }
  return file;
}

std::string content_of(const Descriptor& file) {
  return read_text_file(concat("/proc/self/fd/", file.number()), ExitCode::device);
}

// Runs the command, waits for it, and returns its status as waitpid() does.
int status_of(const std::vector<std::string>& words, const Descriptor (&files)[3]) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3; ++i) {
    ::posix_spawn_file_actions_adddup2(&actions, files[i].number(), i);
  }
  std::vector<char*> arguments{const_cast<char*>("finetune")};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw device_error("a command cannot begin: ", start_failure(error));
  int status = 0;
  while (::waitpid(pid, &status, 0) != pid) {
    if (errno != EINTR) throw device_error("a command: ", std::strerror(errno));
  }
  return status;
}

// "finetune: error: no room\n" -> "no room"
std::string last_error_line(std::string_view text) {
  constexpr std::string_view kBegin = "finetune: error: ";
  const size_t at = text.rfind(kBegin);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = text.substr(at + kBegin.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

}  // namespace

std::string output_of_command(const std::vector<std::string>& words, std::string_view input) {
  const Descriptor files[3] = {nameless_file(input), nameless_file(), nameless_file()};
  const int status = status_of(words, files);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return content_of(files[1]);
  const std::string message = last_error_line(content_of(files[2]));
  const auto code = WIFEXITED(status) ? ExitCode(WEXITSTATUS(status)) : ExitCode::device;
  throw Error(
      code, message.empty() ? concat("finetune ", words[0], " failed without a message") : message);
}

}  // namespace finetune
