// Writes TensorBoard's event files, with their own protobuf and framing code.
#include "train/record/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

#include "core/error.h"
#include "core/files/directory_replacement.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "weights/tensorflow/crc32c.h"

namespace finetune {
namespace {

constexpr std::string_view kEventPrefix = "events.out.tfevents.", kEventSuffix = ".finetune";
// Field numbers of event.proto and summary.proto.
constexpr int kWallTime = 1, kEventStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr int kSummaryValue = 1, kTag = 1, kSimpleValue = 2, kStatus = 1, kStatusStart = 1;
enum Wire { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };

template <typename Number>
std::string little_endian(Number value) {  // x86-64 is little-endian
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

std::string varint_of(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += char(value | 0x80);
  return out + char(value);
}

std::string field_key(int field, Wire wire) {
  return varint_of(uint64_t(field) << 3 | uint64_t(wire));
}

std::string number_field(int field, int64_t value) {
  return field_key(field, varint) + varint_of(uint64_t(value));
}

std::string bytes_field(int field, std::string_view content) {
  return concat(field_key(field, delimited), varint_of(content.size()), content);
}

std::string masked_sum(std::string_view data) {
  return little_endian(masked_crc32c(reinterpret_cast<const uint8_t*>(data.data()), data.size()));
}

std::string record_of(std::string_view data) {
  const std::string length = little_endian(uint64_t(data.size()));
  return concat(length, masked_sum(length), data, masked_sum(data));
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The number in the name of the newest event file; -1 if there is none. TensorBoard reads the files
// in the order of their names.
int64_t newest_number(const fs::path& directory) {
  int64_t newest = -1;
  for (const fs::path& entry : entries_of(directory)) {
    const std::string name = entry.filename().string();
    if (!is_event_file(name)) continue;
    const auto number = parse_int(
        name.substr(kEventPrefix.size(), name.size() - kEventPrefix.size() - kEventSuffix.size()));
    newest = std::max(newest, number.value_or(-1));
  }
  return newest;
}

}  // namespace

bool is_event_file(std::string_view name) {
  return name.starts_with(kEventPrefix) && name.ends_with(kEventSuffix) &&
         name.size() > kEventPrefix.size() + kEventSuffix.size();
}

EventFile::EventFile(const fs::path& directory, int64_t first_step) {
  const int64_t before = newest_number(directory);
  path_ = directory /
          concat(kEventPrefix, std::max(int64_t(std::time(nullptr)), before + 1), kEventSuffix);
  descriptor_ = open_for_appending(path_, true);
  write_event(0, bytes_field(kFileVersion, "brain.Event:2"));
  if (before < 0) return;
  write_event(first_step, bytes_field(kSessionLog, number_field(kStatus, kStatusStart)));
}

EventFile::~EventFile() {
  ::close(descriptor_);
}

void EventFile::append(int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    summary +=
        bytes_field(kSummaryValue, concat(bytes_field(kTag, tag), field_key(kSimpleValue, fixed32),
                                          little_endian(float(value))));
  }
  write_event(step, bytes_field(kSummary, summary));
}

void EventFile::write_event(int64_t step, std::string_view what) {
  const std::string event = concat(field_key(kWallTime, fixed64), little_endian(wall_time()),
                                   step == 0 ? "" : number_field(kEventStep, step), what);
  if (write_all(descriptor_, record_of(event))) return;
  throw write_failure(path_, errno);
}

}  // namespace finetune
