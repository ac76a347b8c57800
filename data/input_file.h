// Data files are read several times (to detect the format, for rows, for a hash); pipes are copied.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace finetune {

struct InputFile {
  InputFile(std::filesystem::path path) : name(std::move(path)), content(name) {}

  std::filesystem::path name;        // as given: in messages, and its suffix tells the format
  std::filesystem::path content;     // the file to read: `name`, or the copy of a pipe
  std::shared_ptr<const void> copy;  // owns the copy of a pipe, so that `content` is readable
};

// Returns whether `path` can be read only once: a pipe, a device, or "-" (standard input).
bool is_pipe(const std::filesystem::path& path);

// Returns `file` in a form that can be read any number of times: a pipe is copied to an unnamed
// file in $TMPDIR. While the pipe brings no data, `check_stop` is called five times a second and
// after each signal; it may throw. Error(data) if `file` cannot be read or is a device,
// Error(model) if the copy cannot be written.
InputFile rereadable(InputFile file, const std::function<void()>& check_stop = nullptr);

// The same with a copy in memory, for small files: Error(data) beyond 1 GiB. Also Error(data) if a
// named pipe has no writer after `most_wait` seconds; 0 waits without a limit.
InputFile in_memory(InputFile file, double most_wait = 0);
constexpr double kSecondsForWriter = 5;  // for inputs that should have a writer already

// Error(data) for a directory, a socket or a device.
void require_stream(const std::filesystem::path& path);

std::string input_name(const std::filesystem::path& path);  // for messages

}  // namespace finetune
