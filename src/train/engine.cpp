#include "train/engine.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "core/parallel.h"
#include "data/packing.h"
#include "data/plan.h"
#include "ops/cuda_module.h"

namespace finetune {
namespace {

constexpr int64_t kActivationBudget = int64_t{512} << 20;  // bytes, what `auto` aims at
constexpr int64_t kPaddedRows = 1024;  // more rows than tokens: embeddings are padded to a multiple

std::vector<int64_t> lengths_of(const TokenizedSamples& samples) {
  std::vector<int64_t> lengths(size_t(samples.size()));
  for (int64_t i = 0; i < samples.size(); ++i) lengths[size_t(i)] = samples.length(i);
  return lengths;
}

void append(const TokenizedSamples& from, TokenizedSamples& to) {
  const int64_t shift = to.offsets.back();
  to.ids.insert(to.ids.end(), from.ids.begin(), from.ids.end());
  to.second.insert(to.second.end(), from.second.begin(), from.second.end());
  for (int64_t i = 1; i <= from.size(); ++i) to.offsets.push_back(shift + from.offsets[size_t(i)]);
}

void drop_first(int64_t count, TokenizedSamples& samples) {
  const int64_t tokens = samples.offsets[size_t(count)];
  samples.ids.erase(samples.ids.begin(), samples.ids.begin() + tokens);
  samples.second.erase(samples.second.begin(), samples.second.begin() + count);
  samples.offsets.erase(samples.offsets.begin(), samples.offsets.begin() + count);
  for (int64_t& offset : samples.offsets) offset -= tokens;
}

// Every token has a row in the embeddings. Data that could break this are refused when they are
// read (open_model, require_pair_types, the tasks' max-length).
void check_embedding(const PackedBatch& batch, const BertConfig& config) {
  if (batch.tokens() == 0) return;
  FINETUNE_CHECK(batch.ids[size_t(batch.order.front())] >= 0);  // sorted by id
  FINETUNE_CHECK(batch.ids[size_t(batch.order.back())] < config.vocab_size);
  FINETUNE_CHECK(*std::max_element(batch.types.begin(), batch.types.end()) <
                 config.type_vocab_size);
  FINETUNE_CHECK(batch.max_length <= config.max_position_embeddings);
}

}  // namespace

std::unique_ptr<Backend> make_backend(std::string_view device, int64_t thread_count,
                                      std::string_view precision) {
  set_threads(thread_count > 0 ? int(thread_count) : available_cores());
  if (device == "cuda") {
    const CudaModule& module = cuda_module();
    throw device_error("--device cuda: ",
                       module.functions ? "this version computes on the CPU only" : module.problem);
  }
  const bool bf16 = precision == "bf16" || (precision == "auto" && cpu_multiplies_bf16_fast());
  return make_cpu_backend(bf16 ? DType::bf16 : DType::f32);
}

ModelFiles open_model(const std::string& path, bool need_weights) {
  ModelFiles files;
  files.directory = find_model(path, need_weights);
  files.config =
      parse_config(read_text_file(files.directory.config, ExitCode::model), files.directory.config);
  files.tokenizer = Tokenizer::load(files.directory.directory);
  if (files.tokenizer->vocabulary_size() > files.config.vocab_size) {
    throw model_error(files.directory.directory.string(), ": the vocabulary has ",
                      files.tokenizer->vocabulary_size(), " tokens, the model's embedding ",
                      files.config.vocab_size, " rows (vocab_size in ",
                      files.directory.config.filename().string(), "): they do not belong together");
  }
  if (files.tokenizer->vocabulary_size() < files.config.vocab_size - kPaddedRows) {
    log("warning: ", files.directory.directory.string(), ": the vocabulary has ",
        files.tokenizer->vocabulary_size(), " tokens, the model's embedding ",
        files.config.vocab_size, " rows; do they belong together?");
  }
  return files;
}

int64_t auto_micro_batch_tokens(const BertConfig& config, int64_t max_length) {
  int64_t per_token =
      4 * (config.num_hidden_layers * (9 * config.hidden_size + 2 * config.intermediate_size) +
           2 * config.hidden_size);
  int64_t tokens = std::clamp<int64_t>(kActivationBudget / per_token / 64 * 64, 256, 16384);
  return std::max(tokens, max_length);
}

Engine::Engine(std::unique_ptr<Backend> backend, const BertConfig& config, Head head)
    : backend_(std::move(backend)),
      config_(config),
      table_(config, head),
      weights_(backend_->allocate(size_t(table_.size()) * sizeof(float))),
      bert_(*backend_, config_, table_) {}

void Engine::reserve(int64_t max_tokens, int64_t max_sequences, bool training, bool recompute) {
  bert_.reserve(max_tokens, max_sequences, training, recompute);
  batch_ = std::make_unique<DeviceBatch>(*backend_, max_tokens, max_sequences);
}

DeviceBatch& Engine::upload(const PackedBatch& batch) {
  FINETUNE_CHECK(batch_ != nullptr);
  check_embedding(batch, config_);
  batch_->upload(batch);
  return *batch_;
}

void Engine::set_evaluation_sequences(int64_t count) {
  if (count > 0) evaluation_sequences_ = count;
}

void Engine::infer(const PackedBatch& batch, std::vector<float>& logits) {
  Tensor out = bert_.forward(upload(batch), weights(), nullptr, false);
  FINETUNE_CHECK(out.contiguous());
  logits.resize(size_t(out.size()));
  backend_->download(logits.data(), out.data, logits.size() * sizeof(float));
}

// Samples of one micro-batch: at most evaluation_sequences_ of them at once.
void Engine::evaluate(const TokenizedSamples& samples, IndexRange range, int64_t samples_before,
                      Evaluation& evaluation) {
  PackedBatch batch;
  std::vector<float> logits;
  std::vector<uint32_t> indices;
  for (int64_t begin = range.begin; begin < range.end; begin += evaluation_sequences_) {
    indices.resize(size_t(std::min(range.end - begin, evaluation_sequences_)));
    std::iota(indices.begin(), indices.end(), uint32_t(begin));
    pack(samples, indices, 0, batch);
    for (uint32_t& index : batch.indices) index += uint32_t(samples_before);
    infer(batch, logits);
    evaluation.add(batch, logits.data());
  }
}

bool Engine::evaluate(const SampleSet& set, Evaluation& evaluation, int64_t micro_batch_tokens,
                      const std::function<bool(double)>& poll) {
  for (IndexRange range : micro_batches(lengths_of(set.samples), micro_batch_tokens)) {
    if (!poll(double(range.begin) / double(set.samples.size()))) return false;
    evaluate(set.samples, range, 0, evaluation);
  }
  return true;
}

void Engine::evaluate(FileEvaluation& evaluation, int64_t micro_batch_tokens,
                      const std::function<void(double)>& progress) {
  TokenizedSamples waiting;
  int64_t done = 0;
  for (bool more = true; more;) {
    const SampleSet* piece = evaluation.next();
    more = piece != nullptr;
    if (more) append(piece->samples, waiting);
    std::vector<IndexRange> ranges = micro_batches(lengths_of(waiting), micro_batch_tokens);
    if (more && !ranges.empty()) ranges.pop_back();  // later samples may still fill it
    for (IndexRange range : ranges) {
      progress(evaluation.share() * double(done + range.begin) / double(done + waiting.size()));
      evaluate(waiting, range, done, evaluation);
    }
    if (ranges.empty()) continue;
    drop_first(ranges.back().end, waiting);
    done += ranges.back().end;
  }
}

MicroBatchLimits micro_batch_limits(const TokenizedSamples& samples, int64_t micro_batch_tokens,
                                    int64_t most_sequences) {
  int64_t longest = 0, shortest = micro_batch_tokens;
  for (int64_t i = 0; i < samples.size(); ++i) {
    longest = std::max(longest, samples.length(i));
    shortest = std::min(shortest, samples.length(i));
  }
  if (samples.size() == 0) return {1, 1};
  int64_t sequences =
      std::min({samples.size(), most_sequences,
                std::max<int64_t>(1, micro_batch_tokens / std::max<int64_t>(1, shortest))});
  int64_t tokens = std::max(longest, std::min(micro_batch_tokens, sequences * longest));
  return {tokens, sequences};
}

}  // namespace finetune
