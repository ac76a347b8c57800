// The seal of a file that holds what was written, summed and compared in one pass.
#include "train/checkpoint/read_back.h"

#include <algorithm>

#include "core/error.h"
#include "train/checkpoint/checkpoint_contents.h"
#include "train/checkpoint/sealed_file.h"

namespace finetune {
namespace {

// Bytes of the file that are a tensor's, in the order of the file.
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

// What lies before, between and behind them: always one more.
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
  // There is nothing that the gaps should be, but the seal must be of what can be read.
  const std::vector<uint32_t> again = crc32c_of(path, gaps);
  for (size_t i = 0; i < gaps.size(); ++i) {
    if (parts[2 * i].crc32c == again[i]) continue;
    throw model_error(path.string(), ": it gives other bytes when it is read again");
  }
  return seal;
}

}  // namespace finetune
