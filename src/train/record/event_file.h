// Event files as TensorBoard reads them: scalars of a run by step.
// Records of TFRecord (length, masked CRC-32C of it, data, masked CRC-32C of them), each an Event
// of TensorFlow's event.proto: file_version first, then summaries of simple values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace finetune {

// The name of a file of ours, which --overwrite may remove.
bool is_event_file(std::string_view name);

// Errors are Error(model) naming the file.
class EventFile {
 public:
  // A new file after those of ours that lie in `directory`. Where there are such, steps that they
  // have from `first_step` on are declared void: they are done again.
  EventFile(const std::filesystem::path& directory, int64_t first_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // One event; it is handed to the operating system at once.
  void append(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  void write_event(int64_t step, std::string_view what);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace finetune
