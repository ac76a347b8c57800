// Damaged weight files: each either reads or is refused with Error(model).
// It never takes more memory than a multiple of its size. FINETUNE_FUZZ=N runs N mutations per file
// instead of a few.
#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>

#include "core/numeric/philox.h"
#include "core/text/text.h"
#include "unit/shared.h"
#include "unit/weights/weights_test.h"

using namespace finetune;
using namespace finetune::test;

namespace {

struct Subject {
  std::string directory;
  std::string file;        // the one that is damaged
  uint32_t structure = 0;  // most damage is in the first bytes, up to this (0: anywhere)
  bool structure_at_end = false;
};

const std::vector<Subject> kSubjects = {
    {"golden/formats/safetensors-f16", "model.safetensors", 5000, false},
    {"golden/formats/safetensors-sharded", "model.safetensors.index.json", 0, false},
    {"weights/camphr_tiny_ner_bert", "pytorch_model.bin", 6000, false},
    {"weights/camphr_tiny_ner_bert", "pytorch_model.bin", 3000, true},
    {"golden/formats/pytorch-legacy", "pytorch_model.bin", 6200, false},
    {"golden/formats/tensorflow-1-checkpoint", "bert_model.ckpt.index", 0, false},
    {"golden/formats/tensorflow-h5", "tf_model.h5", 16000, false},
    {"golden/formats/tensorflow-h5-by-hand", "tf_model.h5", 8000, false},
    {"weights/keras_bert_tf_ckpt", "bert_model.ckpt.index", 0, false},
};

int mutations() {
  const char* count = std::getenv("FINETUNE_FUZZ");
  return count ? int(parse_int(count).value_or(0)) : 60;
}

class Random {
 public:
  explicit Random(uint32_t stream) : stream_(stream) {}
  uint32_t below(uint32_t bound) {
    return uint32_t(unit_interval(philox({1, 2}, {stream_, next_++, 0, 0})[0]) * bound);
  }

 private:
  uint32_t stream_, next_ = 0;
};

std::string mutated(std::string bytes, const Subject& subject, Random& random) {
  const uint32_t size = uint32_t(bytes.size());
  const uint32_t span = subject.structure ? std::min(subject.structure, size) : size;
  const uint32_t begin = subject.structure_at_end ? size - span : 0;
  if (random.below(8) == 0) return bytes.substr(0, random.below(size));
  if (random.below(8) == 0) {  // removes a piece
    uint32_t at = begin + random.below(span);
    return bytes.erase(at, 1 + random.below(16));
  }
  for (uint32_t i = 0, count = 1 + random.below(3); i < count; ++i) {
    char& byte = bytes[begin + random.below(span)];
    const char extremes[] = {'\0', '\xff', '\x7f', '\x80', '\1'};
    byte = random.below(2) ? char(byte ^ (1 << random.below(8))) : extremes[random.below(5)];
  }
  return bytes;
}

// True if it reads; Error(model) is the only other way out.
bool reads(const fs::path& path, uint64_t file_bytes) {
  try {
    auto source = open_weights(path);
    for (const WeightInfo& info : source->tensors()) {
      REQUIRE(uint64_t(count_of(info)) <= 1100 * file_bytes);
      values_of(*source, info);
    }
    return true;
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::model);
    CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
    return false;
  }
}

}  // namespace

TEST_CASE("damaged files read or are refused") {
  uint32_t stream = 0;
  for (const Subject& subject : kSubjects) {
    CAPTURE(subject.directory);
    if (!have_shared(subject.directory)) return;
    TemporaryDirectory directory;
    uint64_t bytes_of_all = 0;
    for (const auto& entry : fs::directory_iterator(shared_path(subject.directory))) {
      fs::copy_file(entry.path(), directory / entry.path().filename().string());
      fs::permissions(directory / entry.path().filename().string(), fs::perms::owner_all);
      bytes_of_all += entry.file_size();
    }
    const std::string whole = read_bytes(directory / subject.file);
    REQUIRE(reads(directory / subject.file, bytes_of_all));
    int refused = 0;
    for (int i = 0; i < mutations(); ++i) {
      Random random(stream++);
      CAPTURE(i);
      write_bytes(directory / subject.file, mutated(whole, subject, random));
      refused += !reads(directory / subject.file, bytes_of_all);
    }
    CHECK(refused > 0);
  }
}
