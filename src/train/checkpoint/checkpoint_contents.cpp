// A checkpoint's attributes, texts and floats, read by our own HDF5 reader.
#include "train/checkpoint/checkpoint_contents.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "train/checkpoint/sealed_file.h"
#include "weights/hdf5/types.h"
#include "weights/stored_tensor.h"

namespace finetune {
namespace {

constexpr size_t kMostTexts = 1'000'000;  // labels; each takes more memory than its bytes

void cut_padding(std::string& text) {
  while (!text.empty() && text.back() == '\0') text.pop_back();
}

bool has_control_byte(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return uint8_t(c) < 0x20 || c == 0x7F; });
}

}  // namespace

CheckpointContents::CheckpointContents(const std::filesystem::path& path) : file_(path) {}

// Reads a 64-bit number, stored in this machine's byte order.
hdf5::AttributeValue CheckpointContents::number(const std::string& group, const std::string& name,
                                                hdf5::Type::Kind kind) {
  hdf5::AttributeValue value = file_.attribute(group, name);
  if (value.type.kind != kind || value.type.size != 8 || value.type.big_endian ||
      !value.shape.empty() || value.bytes.size() != 8) {
    throw model_error(file_.path().string(), ": attribute ", in_quotes(name), " is not ",
                      kind == hdf5::Type::Kind::real ? "a number" : "a whole number",
                      " of 64 bits");
  }
  return value;
}

int64_t CheckpointContents::read_int(const std::string& group, const std::string& name) {
  int64_t value = 0;
  std::memcpy(&value, number(group, name, hdf5::Type::Kind::integer).bytes.data(), sizeof value);
  return value;
}

double CheckpointContents::read_double(const std::string& group, const std::string& name) {
  double value = 0;
  std::memcpy(&value, number(group, name, hdf5::Type::Kind::real).bytes.data(), sizeof value);
  return value;
}

std::string CheckpointContents::read_text(const std::string& group, const std::string& name) {
  hdf5::AttributeValue value = file_.attribute(group, name);
  cut_padding(value.bytes);
  if (value.type.kind != hdf5::Type::Kind::text || !value.shape.empty() ||
      invalid_utf8(value.bytes) != std::string::npos || has_control_byte(value.bytes)) {
    throw model_error(file_.path().string(), ": attribute ", in_quotes(name),
                      " is not a text of one line in UTF-8");
  }
  return std::move(value.bytes);
}

std::vector<std::string> CheckpointContents::attribute_names(const std::string& group) {
  return file_.attribute_names(group);
}

std::vector<std::string> CheckpointContents::read_strings(const std::string& name) {
  const hdf5::Dataset dataset = file_.dataset(name);
  if (dataset.type.kind != hdf5::Type::Kind::text || dataset.shape.size() != 1 ||
      dataset.shape[0] > int64_t(kMostTexts)) {
    throw model_error(file_.path().string(), ": dataset ", in_quotes(name),
                      " is not a list of texts as checkpoints have it");
  }
  const size_t size = dataset.type.size;
  std::string block(size_t(dataset.bytes), '\0');
  file_.read_bytes(dataset, 0, dataset.bytes, block.data());
  std::vector<std::string> values;
  for (size_t i = 0; i < size_t(dataset.shape[0]); ++i) {
    values.push_back(block.substr(i * size, size));
    cut_padding(values.back());
    if (invalid_utf8(values.back()) == std::string::npos) continue;
    throw model_error(file_.path().string(), ": dataset ", in_quotes(name), ": text ", i,
                      " is not valid UTF-8: ", in_quotes(values.back()));
  }
  return values;
}

hdf5::Dataset CheckpointContents::floats(const std::string& name) {
  hdf5::Dataset dataset = file_.dataset(name);
  if (!hdf5::is_plain_float(dataset.type)) {
    throw model_error(file_.path().string(), ": tensor ", in_quotes(name, 200),
                      " is not one unsplit block of float32, as in a checkpoint");
  }
  return dataset;
}

hdf5::Dataset CheckpointContents::floats(const std::string& name,
                                         const std::vector<int64_t>& shape) {
  hdf5::Dataset dataset = floats(name);
  if (dataset.shape != shape) {
    throw model_error(file_.path().string(), ": tensor ", name, " has shape ",
                      shape_text(dataset.shape), ", the model needs ", shape_text(shape));
  }
  return dataset;
}

uint64_t CheckpointContents::floats_at(const std::string& name, const std::vector<int64_t>& shape) {
  const hdf5::Dataset dataset = floats(name, shape);
  if (dataset.layout.kind != hdf5::Layout::Kind::contiguous) {
    throw model_error(file_.path().string(), ": tensor ", name, " lies in its object's header");
  }
  return dataset.position;
}

void CheckpointContents::read_floats(const std::string& name, const std::vector<int64_t>& shape,
                                     const Room& next, const Filled& filled) {
  const hdf5::Dataset dataset = floats(name, shape);
  const uint64_t row = dataset.bytes / uint64_t(std::max<int64_t>(shape[0], 1));
  each_slab(shape, [&](int64_t first, int64_t count) {
    float* data = next(first, count);
    file_.read_bytes(dataset, uint64_t(first) * row, uint64_t(count) * row, data);
    filled(first, count, data);
  });
}

std::vector<CheckpointContents::Entry> CheckpointContents::datasets(const std::string& group) {
  std::vector<Entry> entries;
  for (const std::string& name : file_.names(group)) {
    entries.push_back({name, floats(concat(group, "/", name)).shape});
  }
  return entries;
}

namespace {

// The bytes of one tensor in the file. Places are in the order of the file.
struct Place {
  FilePart part;
  const WrittenTensor* tensor;
};

std::vector<Place> places_of(const std::filesystem::path& path,
                             const std::vector<WrittenTensor>& tensors) {
  CheckpointContents file(path);
  std::vector<Place> places;
  for (const WrittenTensor& tensor : tensors) {
    uint64_t bytes = sizeof(float);
    for (int64_t extent : tensor.shape) bytes *= uint64_t(extent);
    const uint64_t begin = file.floats_at(tensor.name, tensor.shape);
    places.push_back({{begin, begin + bytes}, &tensor});
  }
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.part.begin < b.part.begin; });
  return places;
}

// The parts of the file before, between and behind the places: one more than there are places.
std::vector<FilePart> gaps_of(const std::vector<Place>& places) {
  std::vector<FilePart> gaps;
  uint64_t at = kSealBytes;
  for (const Place& place : places) {
    gaps.push_back({at, std::max(at, place.part.begin)});
    at = place.part.end;
  }
  gaps.push_back({at, kToTheEnd});
  return gaps;
}

}  // namespace

std::string verified_seal(const std::filesystem::path& path,
                          const std::vector<WrittenTensor>& tensors) {
  const std::vector<Place> places = places_of(path, tensors);
  std::vector<FilePart> gaps = gaps_of(places), parts;  // parts: a gap, a tensor, a gap, ...
  for (size_t i = 0; i < places.size(); ++i) {
    parts.push_back(gaps[i]);
    parts.push_back(places[i].part);
  }
  parts.push_back(gaps.back());
  std::string seal = seal_of(path, parts);
  for (size_t i = 0; i < places.size(); ++i) {
    const WrittenTensor& tensor = *places[i].tensor;
    if (parts[2 * i + 1].crc32c == tensor.crc32c) continue;
    throw model_error(path.string(), ": ", tensor.name, " is not as written");
  }
  // Nothing says what the gaps should hold, but two reads must give the same bytes.
  const std::vector<uint32_t> again = crc32c_of(path, gaps);
  for (size_t i = 0; i < gaps.size(); ++i) {
    if (parts[2 * i].crc32c == again[i]) continue;
    throw model_error(path.string(), ": it gives other bytes when it is read again");
  }
  return seal;
}

}  // namespace finetune
