// Writes event files for TensorBoard: the scalars of a run by step. A file has TFRecord records
// (length, its masked CRC-32C, data, its masked CRC-32C). Each holds an Event of TensorFlow's
// event.proto: first file_version, then summaries of simple values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace finetune {

// Whether this is the name of an event file of a run, which --overwrite may remove.
bool is_event_file(std::string_view name);

// Errors are Error(model) naming the file.
class EventFile {
 public:
  // Creates a file that follows those in `directory`. If there are any, it voids their steps from
  // `first_step` on, because these steps are done again.
  EventFile(const std::filesystem::path& directory, int64_t first_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // Writes one event, and hands it to the operating system at once.
  void append(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  void write_event(int64_t step, std::string_view what);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace finetune
