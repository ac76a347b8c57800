// Makes the backend, sizes the buffers, and runs inference on micro-batches.
#include "engine/engine.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/error.h"
#include "core/failure.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/process_stats.h"
#include "core/switches.h"
#include "core/threads/parallel.h"
#include "data/packing.h"
#include "engine/host_memory.h"
#include "engine/model_outputs.h"
#include "model/encoder_layer.h"
#include "ops/cuda/host/cuda_backend.h"
#include "ops/cuda/host/cuda_module.h"
#include "weights/hub_cache.h"

namespace finetune {
namespace {

// Bytes of activations that `auto` aims at, counted as if all were kept. A processor gets the first
// constant. A GPU gets a quarter of its memory, but at most the second constant, which is enough
// for matrix products that fill the GPU.
constexpr int64_t kActivationBudget = int64_t{512} << 20;
constexpr int64_t kMostDeviceBudget = int64_t{16} << 30;
constexpr int64_t kWholeLayerTokens = 4096;
constexpr int64_t kSharedPiece = int64_t{4} << 20;  // floats of one broadcast
constexpr int64_t kPaddedRows = 1024;  // an embedding may have this many rows more than tokens

// Checks that every token has a row in the embeddings. Data without one are refused when they are
// read (open_model, require_pair_types, the tasks' max-length).
void check_embedding(const PackedBatch& batch, const EncoderConfig& config) {
  if (batch.tokens() == 0) return;
  const auto [least, most] = std::minmax_element(batch.ids.begin(), batch.ids.end());
  FINETUNE_CHECK(*least >= 0 && *most < config.vocab_size);
  FINETUNE_CHECK(config.type_vocab_size == 0 || !config.embeddings.pair_types ||
                 *std::max_element(batch.types.begin(), batch.types.end()) <
                     config.type_vocab_size);
  const int64_t last = *std::max_element(batch.positions.begin(), batch.positions.end());
  FINETUNE_CHECK(last < std::min(batch.max_length, config.max_length()));
}

// Linux may grant memory that it does not have, and kill the program when it uses that memory.
void require_memory(const Backend& backend, int64_t bytes) {
  if (!backend.uses_host_memory()) return;
  const double needed = double(bytes) / (1 << 20);
  const double available = available_memory_mb() + free_swap_mb();
  if (available <= 0 || needed <= available) return;
  throw device_error("the model's weights need ", format_fixed(needed, 0), " MiB of memory, ",
                     format_fixed(available, 0), " MiB are available");
}

}  // namespace

bool multiplies_bf16_fast(std::string_view device) {
  return device == "cuda" || cpu_multiplies_bf16_fast();
}

bool may_be_on_gpu(std::string_view device) {
  return device == "cuda" || (device == "auto" && gpu_may_be_present());
}

std::string resolved_device(std::string_view device, std::string* unused) {
  if (unused) unused->clear();
  if (device != "auto") return std::string(device);
  if (!gpu_may_be_present()) return "cpu";
  std::string problem;
  const bool usable = count_gpus(problem) > 0;
  if (unused) *unused = problem;
  return usable ? "cuda" : "cpu";
}

std::unique_ptr<Backend> make_backend(std::string_view device, int64_t thread_count,
                                      std::string_view precision, int local_rank) {
  set_threads(thread_count > 0 ? int(thread_count) : available_cores());
  const bool bf16 = precision == "bf16" || (precision == "auto" && multiplies_bf16_fast(device));
  const DType compute = bf16 ? DType::bf16 : DType::f32;
  if (device != "cuda") return make_cpu_backend(compute);
  std::string problem;
  std::unique_ptr<Backend> backend = make_cuda_backend(compute, &problem, local_rank);
  if (!backend) throw device_error("--device cuda: ", problem, "; --device cpu does without");
  return backend;
}

ModelFiles open_model_config(const std::string& path, bool need_weights) {
  ModelFiles files;
  files.directory = find_model(path, need_weights);
  files.config =
      parse_config(read_text_file(files.directory.config, ExitCode::model), files.directory.config);
  return files;
}

// Token types come from the vocabulary's class, as in transformers: a BERT may have XLM-RoBERTa's
// vocabulary, which has none, and a RoBERTa with two types may have BERT's.
void choose_pair_types(const Tokenizer& tokenizer, EncoderConfig& config) {
  const std::optional<bool> stated = tokenizer.stated().token_types;
  const bool given = stated.value_or(tokenizer.special().separators == 1);
  if (!given || config.type_vocab_size > 1) config.embeddings.pair_types = given;
}

ModelFiles open_model(const std::string& path, bool need_weights) {
  ModelFiles files = open_model_config(path, need_weights);
  const std::filesystem::path& directory = files.directory.directory;
  if (find_tokenizer_files(directory).empty()) {
    if (const std::string advice = hub_advice(directory); !advice.empty()) {
      throw model_error(directory.string(), ": has no vocabulary", advice);
    }
  }
  files.tokenizer = with_memory_advice(kModelAdvice, [&] { return Tokenizer::load(directory); });
  choose_pair_types(*files.tokenizer, files.config);
  if (files.tokenizer->stated().cuts_left) {
    warn(directory.string(), "/tokenizer_config.json: truncation_side is left, which is not ",
         "applied: long texts are cut at their end");
  }
  if (files.tokenizer->vocabulary_size() > files.config.vocab_size) {
    throw model_error(files.directory.directory.string(), ": the vocabulary has ",
                      files.tokenizer->vocabulary_size(), " tokens, the model's embedding ",
                      files.config.vocab_size, " rows (vocab_size in ",
                      files.directory.config.filename().string(), "): they do not belong together");
  }
  if (files.tokenizer->vocabulary_size() < files.config.vocab_size - kPaddedRows) {
    warn(files.directory.directory.string(), ": the vocabulary has ",
         files.tokenizer->vocabulary_size(), " tokens, the model's embedding ",
         files.config.vocab_size, " rows; do they belong together?");
  }
  return files;
}

namespace {

// Rounds down to a power of two, since GPUs of one model differ in the memory that they reserve.
int64_t device_budget(int64_t device_bytes) {
  return std::min(kMostDeviceBudget, int64_t(std::bit_floor(uint64_t(device_bytes))) / 4);
}

}  // namespace

int64_t auto_micro_batch_tokens(const EncoderConfig& config, int64_t max_length,
                                int64_t device_bytes) {
  int64_t per_token =
      4 * (config.num_hidden_layers *
               (9 * config.hidden_size + config.inner_rows() + config.intermediate_size) +
           2 * config.hidden_size);
  const int64_t budget = device_bytes > 0 ? device_budget(device_bytes) : kActivationBudget;
  int64_t tokens = std::clamp<int64_t>(budget / per_token / 64 * 64, 256, 16384);
  return std::max(tokens, max_length);
}

int64_t kept_activation_bytes(int64_t weight_bytes, int64_t device_bytes) {
  if (device_bytes <= 0 || !kCudaKeptSwitch.is_on()) return 0;
  const int64_t left = device_bytes / 8 * 7 - 5 * weight_bytes;  // 5: with rounded copies
  return std::clamp<int64_t>(left, 0, device_budget(device_bytes));
}

// A backend that computes whole layers needs little memory for a token, but packs the weights for
// each micro-batch. So micro-batches are large, but small enough to give several processes work.
int64_t evaluation_tokens(const Backend& backend, const EncoderConfig& config,
                          int64_t micro_batch_tokens, int64_t tensor_shards) {
  if (!has_whole_layers(backend, config, tensor_shards)) return micro_batch_tokens;
  return std::max(micro_batch_tokens, kWholeLayerTokens);
}

namespace {

std::shared_ptr<void> allocate_weights(Backend& backend, const ParameterTable& table,
                                       Communicator& comm) {
  const size_t bytes = size_t(table.size()) * sizeof(float);
  require_memory(backend, int64_t(bytes));
  return allocate_for_host(backend, comm, bytes);
}

// Zeroes the floats between parameters, since `fill` of set_weights() writes only the parameters.
void zero_gaps(const ParameterTable& table, float* arena) {
  int64_t end = 0;
  for (const Parameter& parameter : table.parameters()) {
    FINETUNE_CHECK(parameter.offset >= end);
    std::fill(arena + end, arena + parameter.offset, 0.0f);
    end = parameter.offset + parameter.floats();
  }
  std::fill(arena + end, arena + table.size(), 0.0f);
}

}  // namespace

Engine::Engine(std::unique_ptr<Backend> backend, const EncoderConfig& config, Head head,
               Communicator& comm, WeightUse use)
    : Engine(std::move(backend), config, head, comm, ModelPart::whole(config), nullptr, use) {}

Engine::Engine(std::unique_ptr<Backend> backend, const EncoderConfig& config, Head head,
               Communicator& comm, const ModelPart& part, TensorSum* sum, WeightUse use)
    : backend_(std::move(backend)),
      config_(config),
      part_(part),
      table_(config, head, part,
             use == WeightUse::inference ? backend_->weight_type() : DType::f32),
      weights_(allocate_weights(*backend_, table_, comm)),
      encoder_(*backend_, config_, table_, part, sum) {}

std::shared_ptr<const float> Engine::weights_on_host() {
  const float* own = weights();
  if (backend_->uses_host_memory()) return {weights_, own};
  const size_t count = size_t(table_.size());
  std::shared_ptr<float[]> copy(new float[count]);
  backend_->download(copy.get(), own, count * sizeof(float));
  return {copy, copy.get()};
}

void Engine::set_weights(const std::function<void(float*)>& fill) {
  backend_->forget_packed();
  if (backend_->uses_host_memory()) {
    fill(weights_as_they_are());
    return;
  }
  const size_t count = size_t(table_.size());
  const std::unique_ptr<float[]> arena(new float[count]);
  zero_gaps(table_, arena.get());
  fill(arena.get());
  backend_->upload(weights_as_they_are(), arena.get(), count * sizeof(float));
}

void Engine::share_weights(Communicator& comm) {
  if (!staged_through_host(*backend_, comm)) return;
  std::vector<float> piece(size_t(std::min(kSharedPiece, table_.size())));
  for (int64_t begin = 0; begin < table_.size(); begin += kSharedPiece) {
    const size_t bytes = size_t(std::min(kSharedPiece, table_.size() - begin)) * sizeof(float);
    float* weights = weights_as_they_are() + begin;
    if (comm.rank() == 0) backend_->download(piece.data(), weights, bytes);
    comm.broadcast(piece.data(), bytes, 0);
    if (comm.rank() != 0) backend_->upload(weights, piece.data(), bytes);
  }
}

void Engine::reserve(BatchSize training, BatchSize inference, bool recompute, int64_t slots,
                     int64_t horizon) {
  if (inference.tokens > 0) inference = reserved_size(*backend_, inference);
  inference_size_ = inference;
  const int64_t weight_bytes = table_.size() * kFloatBytes;
  const DeviceMemory device = backend_->device_memory();
  encoder_.reserve(training, inference, recompute, slots, horizon,
                   kept_activation_bytes(weight_bytes, device.free + device.used));
  batches_.clear();
  batches_.emplace_back(*backend_, std::max(training.tokens, inference.tokens),
                        std::max(training.sequences, inference.sequences));
  for (int64_t slot = 1; slot < slots; ++slot) {
    batches_.emplace_back(*backend_, training.tokens, training.sequences);
  }
}

DeviceBatch& Engine::batch(int64_t slot) {
  FINETUNE_CHECK(slot >= 0 && slot < slots());
  return batches_[size_t(slot)];
}

DeviceBatch& Engine::upload(const PackedBatch& packed, float loss_scale, int64_t slot) {
  check_embedding(packed, config_);
  DeviceBatch& uploaded = batch(slot);
  uploaded.upload(packed, loss_scale, config_.embeddings);
  return uploaded;
}

void Engine::set_evaluation_sequences(int64_t count) {
  if (count > 0) evaluation_sequences_ = count;
}

const PackedBatch& Engine::filled(const PackedBatch& batch) {
  if (!backend_->replays()) return batch;
  filled_ = batch;
  fill_up(filled_);
  return filled_;
}

void Engine::infer(const PackedBatch& batch, std::vector<float>& logits) {
  const DeviceBatch& computed = upload_for_inference(batch);
  infer_chunk(0, computed);
  logits.clear();
  append_logits(batch, computed, logits);
}

const DeviceBatch& Engine::upload_for_inference(const PackedBatch& batch) {
  return upload(filled(batch));
}

void Engine::infer_chunk(int64_t chunk, const DeviceBatch& batch) {
  float* arena = weights();
  const int64_t key[] = {chunk, batch.tokens(), batch.sequences(), batch.segments().max_length,
                         batch.scored()};
  replay(ChunkSlot::kInference, key, [&] {
    encoder_.forward({chunk, ChunkSlot::kInference}, batch, arena, nullptr);
  });
}

void Engine::replay(int64_t slot, std::span<const int64_t> key, const std::function<void()>& work) {
  encoder_.may_be_replayed(slot) ? backend_->replay(key, work) : work();
}

// The padding of a micro-batch follows its own sequences and tokens, so it is not copied.
void Engine::append_logits(const PackedBatch& batch, const DeviceBatch& computed,
                           std::vector<float>& logits) {
  const int64_t chunk = int64_t(part_.chunks.size()) - 1;
  const Tensor out = encoder_.output_of({chunk, ChunkSlot::kInference}, computed);
  FINETUNE_CHECK(out.contiguous() && part_.head);
  const size_t before = logits.size();
  const size_t count = size_t(logit_floats(table_.head(), batch));
  logits.resize(before + count);
  if (table_.head().kind == HeadKind::masked) {
    return score(batch, computed, out, logits.data() + before);
  }
  backend_->download(logits.data() + before, out.data, count * sizeof(float));
}

int64_t logit_floats(Head head, const PackedBatch& batch) {
  switch (head.kind) {
    case HeadKind::sequence:
      return batch.sequences() * head.outputs;
    case HeadKind::token:
      return batch.tokens() * head.outputs;
    case HeadKind::masked:
      return int64_t(batch.scored.size() * sizeof(ScoredToken) / sizeof(float));
  }
  return 0;
}

// A micro-batch's logits are large, so the caller gets two numbers for each token instead.
void Engine::score(const PackedBatch& batch, const DeviceBatch& computed, Tensor logits,
                   float* out) {
  const int64_t count = int64_t(batch.scored.size()), words = logits.cols;
  if (count == 0) return;
  if (!losses_) losses_ = backend_->allocate(size_t(inference_size_.tokens) * sizeof(float));
  const Tensor losses = vector(static_cast<float*>(losses_.get()), count);
  backend_->cross_entropy(logits, computed.targets(), {}, 0, computed.scored_loss_scale(), losses,
                          {});
  std::vector<float> of_tokens(static_cast<size_t>(count));
  backend_->download(of_tokens.data(), losses.data, of_tokens.size() * sizeof(float));
  const float* on_host = logits.f32();
  if (!backend_->uses_host_memory()) {
    host_logits_.resize(size_t(logits.size()));
    backend_->download(host_logits_.data(), logits.data, host_logits_.size() * sizeof(float));
    on_host = host_logits_.data();
  }
  parallel_for(count, [&](int64_t i) {
    const float* row = on_host + i * words;
    const int32_t target = batch.targets[size_t(i)];
    int32_t before = 0;
    for (int32_t w = 0; w < target; ++w) before += row[w] >= row[target];
    for (int32_t w = target + 1; w < words; ++w) before += row[w] > row[target];
    out[2 * i] = of_tokens[size_t(i)];
    out[2 * i + 1] = float(before);
  });
}

MicroBatchLimits micro_batch_limits(const SampleView& samples, const MicroBatching& cut,
                                    int64_t most_sequences) {
  if (samples.size() == 0) return {1, 1};
  int64_t longest = 0, shortest = std::numeric_limits<int64_t>::max();
  for (int64_t i = 0; i < samples.size(); ++i) {
    longest = std::max(longest, samples.length(i));
    shortest = std::min(shortest, samples.length(i));
  }
  const RunBounds most =
      largest_run({std::min(samples.size(), most_sequences), longest, shortest}, cut);
  return {most.tokens, most.sequences};
}

BatchSize reserved_size(const Backend& backend, BatchSize limits) {
  if (!backend.replays()) return limits;
  const BatchShape most = largest_filled({limits.tokens, limits.sequences, 0});
  return {most.tokens, most.sequences};
}

}  // namespace finetune
