// A file of data that is read more than once: to see what it holds, for its rows, for its hash.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace finetune {

struct InputFile {
  InputFile(std::filesystem::path path) : name(std::move(path)), content(name) {}

  std::filesystem::path name;        // as given: in messages, and its suffix tells the format
  std::filesystem::path content;     // what to open: `name`, or what stands for it
  std::shared_ptr<const void> copy;  // of a pipe: keeps `content` readable
};

// A pipe, a device, or "-", the standard input: it can be read once only.
bool is_pipe(const std::filesystem::path& path);

// `file` to be read as often as needed: a pipe is read to its end into a nameless file in $TMPDIR.
// While a pipe brings nothing (or nobody has opened its other end), `check_stop` is called five
// times a second and after every signal; it may throw. Error(data) if `file` cannot be read (also
// a device, which may have no end), Error(model) if the copy cannot be written.
InputFile rereadable(InputFile file, const std::function<void()>& check_stop = nullptr);

// The same in memory, for what is small: Error(data) beyond 1 GiB. Error(data) too if nobody has
// opened a named pipe's other end after `most_wait` seconds; 0: however long it takes.
InputFile in_memory(InputFile file, double most_wait = 0);
constexpr double kSecondsForWriter = 5;  // for inputs that nobody is expected to write later

// Error(data) for a directory, a socket or a device.
void require_stream(const std::filesystem::path& path);

std::string input_name(const std::filesystem::path& path);  // for messages

}  // namespace finetune
