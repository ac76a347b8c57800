// Finds the most even split of layers into stages, or parses a given one.
#include "distributed/layout/stage_split.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/text/text.h"

namespace finetune {
namespace {

// The cost of reading and adding an element (embeddings, LayerNorm), in multiply-adds.
constexpr double kElementwise = 50;
// Sums that differ by less count as equal: the order of additions differs.
constexpr double kEqual = 1e-9;

// The cost of a run of layers, with embeddings and head at the ends.
class RunCosts {
 public:
  explicit RunCosts(const LayerCosts& costs) : costs_(costs), sums_(costs.layers.size() + 1) {
    std::partial_sum(costs.layers.begin(), costs.layers.end(), sums_.begin() + 1);
  }
  double of(int64_t begin, int64_t end) const {
    return sums_[size_t(end)] - sums_[size_t(begin)] + (begin == 0 ? costs_.embeddings : 0) +
           (end + 1 == int64_t(sums_.size()) ? costs_.head : 0);
  }

 private:
  const LayerCosts& costs_;
  std::vector<double> sums_;
};

// The number of blocks needed if none may cost more than `most`; max() if a single layer does.
int64_t blocks_needed(const RunCosts& costs, int64_t layers, double most) {
  int64_t blocks = 0;
  for (int64_t begin = 0, end; begin < layers; begin = end, ++blocks) {
    end = begin;
    while (end < layers && costs.of(begin, end + 1) <= most) ++end;
    if (end == begin) return std::numeric_limits<int64_t>::max();
  }
  return blocks;
}

// The least possible cost of the slowest block, or slightly more.
double least_slowest(const RunCosts& costs, int64_t layers, int64_t blocks) {
  double low = 0, high = costs.of(0, layers);
  while (high - low > kEqual / 4 * high) {
    const double middle = (low + high) / 2;
    (blocks_needed(costs, layers, middle) <= blocks ? high : low) = middle;
  }
  return high;
}

// Lists the sizes of runs of layers. A new run can begin at a layer if neither it nor a later layer
// shares weights with an earlier one.
std::vector<int64_t> runs_of(const EncoderConfig& config) {
  if (config.layer.groups == 0) return {};
  std::vector<int64_t> runs;
  int64_t end = config.num_hidden_layers, lowest = end;
  for (int64_t layer = end - 1; layer >= 0; --layer) {
    lowest = std::min(lowest, config.weights_layer(layer));
    if (lowest < layer) continue;
    runs.insert(runs.begin(), end - layer);
    end = layer;
  }
  return runs;
}

// Returns the sizes of the blocks for --stages auto.
std::vector<int64_t> even_sizes(const LayerCosts& costs, int64_t blocks) {
  std::vector<int64_t> sizes;
  if (int64_t(costs.runs.size()) < blocks) {
    for (IndexRange block : split_evenly(costs, blocks)) sizes.push_back(block.size());
    return sizes;
  }
  LayerCosts of_runs{costs.embeddings, {}, costs.head};
  int64_t begin = 0;
  for (int64_t size : costs.runs) {
    const auto first = costs.layers.begin() + begin;
    of_runs.layers.push_back(std::accumulate(first, first + size, 0.0));
    begin += size;
  }
  for (IndexRange block : split_evenly(of_runs, blocks)) {
    const auto first = costs.runs.begin() + block.begin;
    sizes.push_back(std::accumulate(first, first + block.size(), int64_t{0}));
  }
  return sizes;
}

std::vector<int64_t> given_sizes(std::string_view words, int stages, int64_t layers) {
  std::vector<int64_t> sizes;
  for (std::string_view word : split(words, ',')) {
    const auto size = parse_int(trim(word));
    if (!size || *size < 1 || *size > layers) {
      throw usage_error("--stages ", in_quotes(words), ": ", in_quotes(word),
                        " is not a number of layers from 1 to ", layers);
    }
    sizes.push_back(*size);
  }
  const int64_t sum = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (int64_t(sizes.size()) != stages) {
    throw usage_error("--stages ", in_quotes(words), " names ", sizes.size(), " stages; --pp is ",
                      stages);
  }
  if (sum != layers) {
    throw usage_error("--stages ", in_quotes(words), " has ", sum, " layers; the model has ",
                      layers);
  }
  return sizes;
}

// Block b becomes chunk b / stages of stage b % stages.
StageSplit dealt(const std::vector<int64_t>& sizes, int stages) {
  StageSplit split;
  split.chunks.resize(size_t(stages));
  int64_t begin = 0;
  for (size_t b = 0; b < sizes.size(); ++b) {
    split.chunks[b % size_t(stages)].push_back({begin, begin + sizes[b]});
    begin += sizes[b];
  }
  return split;
}

}  // namespace

double LayerCosts::total(IndexRange range) const {
  return RunCosts(*this).of(range.begin, range.end);
}

LayerCosts layer_costs(const EncoderConfig& config, Head head, int64_t length) {
  const double h = double(config.hidden_size), inner = double(config.intermediate_size);
  const double dense = 2 * (4 * h * h + h * (double(config.inner_rows()) + inner));
  LayerCosts costs;
  costs.embeddings = kElementwise * h;
  double attention = 0;
  for (int64_t l = 0; l < config.num_hidden_layers; ++l) {
    const int64_t seen =
        config.rotary.is_local(l) ? std::min(length, 2 * config.rotary.window + 1) : length;
    attention = 4 * h * double(seen);
    costs.layers.push_back(dense + attention);
  }
  costs.head = 2 * h * double(head.outputs);
  if (config.has_dense(head.kind)) costs.head += 2 * h * h;
  const double first = 1 / double(length);  // share of tokens computed; keys and values cover all
  if (head.kind == HeadKind::sequence) costs.head *= first;
  if (config.reads_first_only(head.kind)) {
    costs.layers.back() = 4 * h * h + (dense - 4 * h * h + attention) * first;
  }
  costs.runs = runs_of(config);
  return costs;
}

std::vector<IndexRange> split_evenly(const LayerCosts& layer_costs, int64_t blocks) {
  const int64_t layers = int64_t(layer_costs.layers.size());
  FINETUNE_CHECK(blocks >= 1 && blocks <= layers);
  const RunCosts costs(layer_costs);
  const double most = least_slowest(costs, layers, blocks) * (1 + kEqual);
  constexpr double kImpossible = std::numeric_limits<double>::infinity();
  // least[b][end]: the smallest sum of squares of b blocks that end there, each of cost <= most.
  std::vector<std::vector<double>> least(size_t(blocks) + 1,
                                         std::vector<double>(size_t(layers) + 1, kImpossible));
  std::vector<std::vector<int64_t>> from(size_t(blocks) + 1,
                                         std::vector<int64_t>(size_t(layers) + 1, 0));
  least[0][0] = 0;
  for (int64_t b = 1; b <= blocks; ++b) {
    for (int64_t end = b; end <= layers - (blocks - b); ++end) {
      double& best = least[size_t(b)][size_t(end)];
      // Starts with the longest last block, which wins a tie.
      int64_t begin = end - 1;
      while (begin >= b && costs.of(begin - 1, end) <= most) --begin;
      for (; begin < end; ++begin) {
        const double cost = costs.of(begin, end);
        const double sum = least[size_t(b) - 1][size_t(begin)] + cost * cost;
        if (cost > most || !(sum < best * (1 - kEqual))) continue;
        best = sum;
        from[size_t(b)][size_t(end)] = begin;
      }
    }
  }
  FINETUNE_CHECK(least.back().back() < kImpossible);
  std::vector<IndexRange> runs(static_cast<size_t>(blocks));
  int64_t end = layers;
  for (int64_t b = blocks; b > 0; --b) {
    runs[size_t(b) - 1] = {from[size_t(b)][size_t(end)], end};
    end = runs[size_t(b) - 1].begin;
  }
  return runs;
}

int64_t StageSplit::layers(int stage) const {
  int64_t count = 0;
  for (IndexRange chunk : chunks[size_t(stage)]) count += chunk.size();
  return count;
}

int64_t StageSplit::layers() const {
  int64_t count = 0;
  for (int stage = 0; stage < stages(); ++stage) count += layers(stage);
  return count;
}

StageSplit split_stages(std::string_view words, int stages, int chunks, const LayerCosts& costs) {
  const int64_t layers = int64_t(costs.layers.size()), blocks = int64_t(stages) * chunks;
  if (blocks > layers) {
    throw usage_error("--pp ", stages, chunks > 1 ? concat(" times --chunks ", chunks) : "",
                      " needs ", blocks, " layers; the model has ", layers);
  }
  std::vector<int64_t> sizes;
  if (words == "auto") return dealt(even_sizes(costs, blocks), stages);
  const std::vector<int64_t> given = given_sizes(words, stages, layers);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (int64_t size : given) {
      if (size < chunks) {
        throw usage_error("--stages ", in_quotes(words), ": a stage of ", size, " layers has no ",
                          chunks, " chunks");
      }
      sizes.push_back(part(size, chunks, chunk).size());
    }
  }
  return dealt(sizes, stages);
}

bool has_own_weights(const StageSplit& split, const EncoderConfig& config) {
  for (const std::vector<IndexRange>& of_stage : split.chunks) {
    for (const IndexRange& chunk : of_stage) {
      for (int64_t layer = chunk.begin; layer < chunk.end; ++layer) {
        if (!chunk.contains(config.weights_layer(layer))) return false;
      }
    }
  }
  return true;
}

void require_own_weights(const StageSplit& split, const EncoderConfig& config) {
  if (has_own_weights(split, config)) return;
  throw usage_error(
      "--pp ", split.stages(), ": layers that share weights must be in one stage, and ",
      config.architecture->model_type,
      " shares them; choose --stages between groups of layers, --tp, or processes without --pp");
}

ModelPart part_of(const StageSplit& split, int stage, int64_t tensor_shards, int tp, int t) {
  FINETUNE_CHECK(tensor_shards % tp == 0);
  ModelPart held;
  held.chunks = split.chunks[size_t(stage)];
  held.embeddings = stage == 0;
  held.head = stage + 1 == split.stages();
  held.tensor_shards = tensor_shards;
  held.shards = part(tensor_shards, tp, t);
  return held;
}

ModelPart part_of(const StageSplit& split, const Layout& layout, int64_t tensor_shards, int rank) {
  const Coordinates at = layout.at(rank);
  return part_of(split, at.p, tensor_shards, layout.tp(), at.t);
}

}  // namespace finetune
