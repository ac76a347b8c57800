// Rounds, prunes and writes n-grams' weights, and reads them without trusting the file.
#include "tasks/classification/ngram_mix/ngram_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/numeric/dtype.h"
#include "core/sha256.h"
#include "tasks/task.h"

namespace finetune {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kFileMagic = "ftngrams";
constexpr uint32_t kFileVersion = 1, kVersionWithColumns = 2, kVersionWithCommas = 3;
constexpr uint64_t kMostTexts = uint64_t{1} << 40;
constexpr uint32_t kMostOutputs = UINT16_MAX;
constexpr size_t kSumBytes = 64, kNgramBytes = 8 + 4 + 2, kWeightBytes = 2 + 2;
constexpr uint16_t kMagnitude = 0x7FFF, kInfinity = 0x7C00;  // in a half's bits
constexpr float kMostBias = 65504;                           // limit as for a weight

struct FileSizes {
  uint32_t version = kFileVersion, outputs = 0;
  uint64_t texts = 0, ngrams = 0, weights = 0;

  uint64_t bytes() const {
    return kFileMagic.size() + sizeof(FileSizes) + 4 * uint64_t{outputs} + kNgramBytes * ngrams +
           kWeightBytes * weights + kSumBytes;
  }
};
static_assert(sizeof(FileSizes) == 32);

struct FileScale {
  double mean, deviation;
};
static_assert(sizeof(FileScale) == 16);

// Follows the sizes in versions 2 and 3.
struct FileColumns {
  uint32_t numbers = 0, categories = 0;

  uint64_t bytes(uint32_t version) const {
    const uint64_t of_each = sizeof(FileScale) + (version == kVersionWithCommas ? 1 : 0);
    return sizeof(FileColumns) + uint64_t{numbers} * of_each;
  }
};

uint16_t half_of(float value) {
  const uint16_t half = float_to_half(value);
  return (half & kMagnitude) < kInfinity ? half : uint16_t(half - 1);
}

// The least magnitude of a weight to keep, so that the file fits. 1: leaves out only zeros, and
// keeps n-grams without weights. 2 and more: leaves these out, too.
uint16_t least_magnitude(const SparseWeights& weights, uint64_t room) {
  std::vector<uint64_t> bytes(kInfinity + 1);  // needed for the weights of each magnitude
  for (int64_t i = 0; i < weights.features(); ++i) {
    uint16_t largest = 1;
    for (const SparseWeights::Weight& weight : weights.of(i)) {
      const uint16_t magnitude = half_of(weight.value) & kMagnitude;
      if (magnitude > 0) bytes[magnitude] += kWeightBytes;
      largest = std::max(largest, magnitude);
    }
    bytes[largest] += kNgramBytes;
  }
  uint64_t sum = 0;
  for (uint16_t least = kInfinity; least > 1; --least) {
    sum += bytes[least];
    if (sum > room) return uint16_t(least + 1);
  }
  return sum + bytes[1] > room ? 2 : 1;
}

float finite_bias(double bias) {
  if (!std::isfinite(bias)) return bias < 0 ? -1.0f : 1.0f;
  return std::clamp(float(bias), -kMostBias, kMostBias);
}

// Appends arrays to the file's text.
class NgramOutput {
 public:
  explicit NgramOutput(std::string& text) : text_(text) {}
  template <typename T>
  void add(const T& value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <typename T>
  void add(const std::vector<T>& values) {
    text_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }

 private:
  std::string& text_;
};

// The n-grams of the file, in its order.
struct FileArrays {
  std::vector<uint64_t> hashes;
  std::vector<uint32_t> texts;
  std::vector<uint16_t> counts, outputs, values;
};

FileArrays arrays_of(const NgramModel& model, uint16_t least) {
  const std::vector<KnownNgram> ngrams = model.index().ngrams();
  std::vector<uint32_t> order(ngrams.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return ngrams[a].hash < ngrams[b].hash; });
  FileArrays out;
  for (uint32_t i : order) {
    const size_t before = out.values.size();
    for (const SparseWeights::Weight& weight : model.weights().of(i)) {
      const uint16_t half = half_of(weight.value);
      if ((half & kMagnitude) < least) continue;
      out.outputs.push_back(uint16_t(weight.output));
      out.values.push_back(half);
    }
    const size_t count = out.values.size() - before;
    if (count == 0 && least > 1) continue;
    out.hashes.push_back(ngrams[i].hash);
    out.texts.push_back(ngrams[i].texts);
    out.counts.push_back(uint16_t(count));
  }
  return out;
}

// Finds n-grams by hash: an index of the hashes' first bits, then binary search.
class SortedNgrams final : public NgramIndex {
 public:
  SortedNgrams(std::vector<uint64_t> hashes, std::vector<uint32_t> counts, int64_t texts,
               SideColumns columns)
      : hashes_(std::move(hashes)), counts_(std::move(counts)), texts_(texts) {
    columns_ = std::move(columns);
    const int bits = std::max<int>(1, std::bit_width(hashes_.size()));
    shift_ = 64 - bits;
    begins_.resize((size_t{1} << bits) + 1);
    for (uint64_t hash : hashes_) ++begins_[(hash >> shift_) + 1];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    for (uint32_t count : counts_) idf_.push_back(idf_of(texts, count));
  }

  int64_t number_of(uint64_t hash) const override {
    const auto part = hashes_.begin() + begins_[hash >> shift_];
    const auto end = hashes_.begin() + begins_[(hash >> shift_) + 1];
    const auto found = std::lower_bound(part, end, hash);
    return found == end || *found != hash ? -1 : found - hashes_.begin();
  }
  std::vector<KnownNgram> ngrams() const override {
    std::vector<KnownNgram> out;
    for (size_t i = 0; i < hashes_.size(); ++i) out.push_back({hashes_[i], counts_[i]});
    return out;
  }
  int64_t texts() const override { return texts_; }

 private:
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> counts_;
  std::vector<uint32_t> begins_;  // by the hashes' first bits
  int shift_ = 0;
  int64_t texts_;
};

// A file whose length was checked against the sizes in it.
class NgramInput {
 public:
  NgramInput(std::string_view bytes, const std::string& where) : where_(where), rest_(bytes) {
    if (!rest_.starts_with(kFileMagic)) throw fault("is not a file of n-grams");
    rest_.remove_prefix(kFileMagic.size());
    if (rest_.size() < sizeof sizes_) throw fault("is cut short");
    std::memcpy(&sizes_, rest_.data(), sizeof sizes_);
    rest_.remove_prefix(sizeof sizes_);
    if (sizes_.version < kFileVersion || sizes_.version > kVersionWithCommas) {
      throw fault("has version ", sizes_.version, ", this program reads ", kFileVersion, " to ",
                  kVersionWithCommas);
    }
    const uint64_t column_bytes = sizes_.version >= kVersionWithColumns ? take_columns() : 0;
    const bool possible = sizes_.outputs > 0 && sizes_.outputs <= kMostOutputs &&
                          sizes_.texts <= kMostTexts && sizes_.ngrams <= bytes.size() &&
                          sizes_.weights <= bytes.size();
    if (!possible || sizes_.bytes() + column_bytes != bytes.size()) {
      throw fault("has ", bytes.size(), " bytes, which its ", sizes_.outputs, " outputs, ",
                  sizes_.ngrams, " n-grams and ", sizes_.weights, " weights do not have");
    }
    sha256 = bytes.substr(bytes.size() - kSumBytes);
    if (sha256 != sha256_of(bytes.substr(0, bytes.size() - kSumBytes))) {
      throw fault("is damaged: its bytes have another SHA-256 than it says");
    }
  }

  template <typename T>
  std::vector<T> take(uint64_t count) {
    std::vector<T> out(count);
    if (count > 0) std::memcpy(out.data(), rest_.data(), count * sizeof(T));
    rest_.remove_prefix(count * sizeof(T));
    return out;
  }
  const FileSizes& sizes() const { return sizes_; }
  SideColumns columns;
  template <typename... Parts>
  Error fault(const Parts&... parts) const {
    return model_error(where_, ": ", parts...);
  }

  std::string sha256;

 private:
  // Returns the number of bytes of the columns.
  uint64_t take_columns() {
    FileColumns counts;
    if (rest_.size() < sizeof counts) throw fault("is cut short");
    counts = take<FileColumns>(1)[0];
    if (counts.numbers > kMostSideColumns || counts.categories > kMostSideColumns) {
      throw fault("has ", counts.numbers, " columns of numbers and ", counts.categories,
                  " of categories");
    }
    const uint64_t bytes = counts.bytes(sizes_.version);
    if (rest_.size() + sizeof counts < bytes) throw fault("is cut short");
    columns.categories = counts.categories;
    for (const FileScale& scale : take<FileScale>(counts.numbers)) {
      columns.numbers.push_back({scale.mean, scale.deviation});
    }
    if (sizes_.version == kVersionWithCommas) take_commas();
    for (const NumberScale& scale : columns.numbers) {
      if (std::isfinite(scale.mean) && std::isfinite(scale.deviation) && scale.deviation > 0)
        continue;
      throw fault("has a column of mean ", scale.mean, " and deviation ", scale.deviation);
    }
    return bytes;
  }

  void take_commas() {
    const std::vector<uint8_t> commas = take<uint8_t>(columns.numbers.size());
    for (size_t i = 0; i < commas.size(); ++i) {
      if (commas[i] > 1) throw fault("has a column whose decimals are of kind ", int{commas[i]});
      columns.numbers[i].comma_decimals = commas[i] == 1;
    }
  }

  const std::string& where_;
  std::string_view rest_;
  FileSizes sizes_;
};

std::vector<double> take_biases(NgramInput& in) {
  std::vector<double> out;
  for (float bias : in.take<float>(in.sizes().outputs)) {
    if (!(std::abs(bias) <= kMostBias)) throw in.fault("has a bias of ", bias);
    out.push_back(double(bias));
  }
  return out;
}

std::unique_ptr<const NgramIndex> take_index(NgramInput& in) {
  const FileSizes& sizes = in.sizes();
  std::vector<uint64_t> hashes = in.take<uint64_t>(sizes.ngrams);
  std::vector<uint32_t> texts = in.take<uint32_t>(sizes.ngrams);
  for (size_t i = 1; i < hashes.size(); ++i) {
    if (hashes[i - 1] >= hashes[i]) throw in.fault("has n-grams that are out of order");
  }
  for (uint32_t count : texts) {
    if (count == 0 || count > sizes.texts) {
      throw in.fault("has an n-gram in ", count, " of ", sizes.texts, " texts");
    }
  }
  return std::make_unique<SortedNgrams>(std::move(hashes), std::move(texts), int64_t(sizes.texts),
                                        in.columns);
}

std::vector<uint64_t> take_begins(NgramInput& in) {
  std::vector<uint64_t> begins{0};
  for (uint16_t count : in.take<uint16_t>(in.sizes().ngrams)) {
    begins.push_back(begins.back() + count);
  }
  if (begins.back() == in.sizes().weights) return begins;
  throw in.fault("has ", in.sizes().weights, " weights, its n-grams ", begins.back());
}

std::vector<SparseWeights::Weight> take_weights(NgramInput& in,
                                                const std::vector<uint64_t>& begins) {
  const std::vector<uint16_t> outputs = in.take<uint16_t>(in.sizes().weights);
  const std::vector<uint16_t> values = in.take<uint16_t>(in.sizes().weights);
  std::vector<SparseWeights::Weight> out(outputs.size());
  for (size_t ngram = 0; ngram + 1 < begins.size(); ++ngram) {
    for (uint64_t i = begins[ngram]; i < begins[ngram + 1]; ++i) {
      const bool follows = i == begins[ngram] || outputs[i - 1] < outputs[i];
      if (outputs[i] >= in.sizes().outputs || !follows) {
        throw in.fault("has a weight for output ", outputs[i], " of ", in.sizes().outputs,
                       follows ? "" : ", out of order");
      }
      const uint16_t magnitude = values[i] & kMagnitude;
      if (magnitude == 0 || magnitude >= kInfinity) {
        throw in.fault("has a weight that is 0 or no number");
      }
      out[i] = {int32_t(outputs[i]), half_to_float(values[i])};
    }
  }
  return out;
}

}  // namespace

std::string ngram_file_of(const NgramModel& model, size_t most_bytes) {
  FileSizes sizes;
  sizes.outputs = uint32_t(model.outputs());
  const uint64_t others = sizes.bytes();
  const uint64_t room = most_bytes > others ? most_bytes - others : 0;
  const FileArrays arrays = arrays_of(model, least_magnitude(model.weights(), room));
  sizes.texts = uint64_t(model.index().texts());
  sizes.ngrams = arrays.hashes.size();
  sizes.weights = arrays.values.size();
  const SideColumns& columns = model.index().columns();
  const bool has_columns = columns.counts().all() > 0;
  std::vector<uint8_t> commas;
  for (const NumberScale& column : columns.numbers) commas.push_back(column.comma_decimals);
  const bool has_commas = std::count(commas.begin(), commas.end(), 1) > 0;
  if (has_columns) sizes.version = has_commas ? kVersionWithCommas : kVersionWithColumns;
  std::string text(kFileMagic);
  text.reserve(sizes.bytes());
  NgramOutput out(text);
  out.add(sizes);
  if (has_columns) {
    out.add(FileColumns{uint32_t(columns.numbers.size()), uint32_t(columns.categories)});
    for (const NumberScale& column : columns.numbers) {
      out.add(FileScale{column.mean, column.deviation});
    }
    if (has_commas) out.add(commas);
  }
  for (double bias : model.weights().biases()) out.add(finite_bias(bias));
  out.add(arrays.hashes);
  out.add(arrays.texts);
  out.add(arrays.counts);
  out.add(arrays.outputs);
  out.add(arrays.values);
  return text + sha256_of(text);
}

StoredNgrams read_ngram_file(std::string_view bytes, const std::string& where) {
  NgramInput in(bytes, where);
  std::vector<double> biases = take_biases(in);
  std::unique_ptr<const NgramIndex> index = take_index(in);
  std::vector<uint64_t> begins = take_begins(in);
  std::vector<SparseWeights::Weight> weights = take_weights(in, begins);
  return {NgramModel(std::move(index),
                     SparseWeights(std::move(begins), std::move(weights), std::move(biases))),
          in.sha256};
}

}  // namespace finetune
