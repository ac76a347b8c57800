// Rank 0 dispatches micro-batches, all processes infer, logits come back in order.
#include "inference/batch_dispatch.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "core/error.h"
#include "core/phase_times.h"
#include "data/packing.h"
#include "data/plan.h"
#include "inference/window_pool.h"

namespace finetune {
namespace {

std::vector<int64_t> lengths_of(const TokenizedSamples& samples) {
  std::vector<int64_t> lengths(size_t(samples.size()));
  for (int64_t i = 0; i < samples.size(); ++i) lengths[size_t(i)] = samples.length(i);
  return lengths;
}

void drop_first(int64_t count, TokenizedSamples& samples) {
  const int64_t tokens = samples.offsets[size_t(count)];
  samples.ids.erase(samples.ids.begin(), samples.ids.begin() + tokens);
  if (!samples.targets.empty()) {
    samples.targets.erase(samples.targets.begin(), samples.targets.begin() + tokens);
  }
  samples.second.erase(samples.second.begin(), samples.second.begin() + count);
  samples.offsets.erase(samples.offsets.begin(), samples.offsets.begin() + count);
  for (int64_t& offset : samples.offsets) offset -= tokens;
}

// The message to another process holds its micro-batches one behind the other. Each has the number
// of sequences and of scored tokens, each sequence's length and the start of its second part, all
// tokens, the places of the scored tokens, and their targets. An empty message: nothing to do in
// this round. Message::end alone: no more rounds.
enum class Message : int32_t { end, batch };

std::vector<uint8_t> to_bytes(std::span<const PackedBatch> batches) {
  std::vector<int32_t> words;
  for (const PackedBatch& batch : batches) {
    words.insert(words.end(), {int32_t(Message::batch), int32_t(batch.sequences()),
                               int32_t(batch.scored.size())});
    for (int64_t b = 0; b < batch.sequences(); ++b) {
      const int32_t begin = batch.offsets[size_t(b)], end = batch.offsets[size_t(b) + 1];
      const auto types = batch.types.begin();
      words.push_back(end - begin);
      words.push_back(int32_t(std::find(types + begin, types + end, 1) - (types + begin)));
    }
    words.insert(words.end(), batch.ids.begin(), batch.ids.end());
    words.insert(words.end(), batch.scored.begin(), batch.scored.end());
    words.insert(words.end(), batch.targets.begin(), batch.targets.end());
  }
  std::vector<uint8_t> bytes(words.size() * sizeof(int32_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

// Returns the first micro-batch and removes it from `words`.
TokenizedSamples take_samples(std::span<const int32_t>& words) {
  TokenizedSamples samples;
  const int64_t count = words[1];
  const size_t scored = size_t(words[2]);
  words = words.subspan(3);
  for (int64_t b = 0; b < count; ++b, words = words.subspan(2)) {
    samples.offsets.push_back(samples.offsets.back() + words[0]);
    samples.second.push_back(uint32_t(words[1]));
  }
  const auto ids = words.first(size_t(samples.offsets.back()));
  samples.ids.assign(ids.begin(), ids.end());
  words = words.subspan(ids.size());
  if (scored > 0) samples.targets.assign(ids.size(), -1);
  for (size_t i = 0; i < scored; ++i) samples.targets[size_t(words[i])] = words[scored + i];
  words = words.subspan(2 * scored);
  return samples;
}

void pack_all(const TokenizedSamples& samples, IndexRange range, PackedBatch& batch) {
  std::vector<uint32_t> indices(size_t(range.size()));
  std::iota(indices.begin(), indices.end(), uint32_t(range.begin));
  pack(samples, indices, {}, batch, TokenOrder::none);
}

}  // namespace

BatchDispatcher::BatchDispatcher(Engine& engine, Communicator& comm)
    : engine_(engine), comm_(comm), pending_(engine) {
  const Head head = engine.table().head();
  if (head.kind == HeadKind::sequence) cache_.emplace(head.outputs);
}

BatchDispatcher::BatchDispatcher(Engine& engine, ReplicaStages& stages)
    : BatchDispatcher(engine, stages.world()) {
  stages_ = &stages;
}

void BatchDispatcher::take(const SampleView& samples, TokenizedSamples& waiting, LogitsSink& sink) {
  if (!cache_) return append(samples, waiting);
  cache_->take(samples, waiting);
  cache_->give(sink);
}

void BatchDispatcher::give(const PackedBatch& batch, const float* logits, LogitsSink& sink) {
  if (given_++ == 0) phase_ended("first micro-batch");
  if (!cache_) return sink.add(batch, logits);
  cache_->computed(logits, batch.sequences());
  cache_->give(sink);
}

// Adds one planned micro-batch, cut into batches of at most evaluation_sequences samples.
void BatchDispatcher::add(const TokenizedSamples& samples, IndexRange range, int64_t samples_before,
                          LogitsSink& sink) {
  waiting_.resize(size_t(replicas()) * size_t(in_flight()));
  const int64_t most = engine_.evaluation_sequences();
  for (int64_t begin = range.begin; begin < range.end; begin += most) {
    PackedBatch& batch = waiting(count_++);
    pack_all(samples, {begin, std::min(range.end, begin + most)}, batch);
    for (uint32_t& index : batch.indices) index += uint32_t(samples_before);
    if (count_ == waiting_.size()) flush(sink);
  }
}

// The place of the round's micro-batch `index`: replicas get micro-batches in turn.
PackedBatch& BatchDispatcher::waiting(size_t index) {
  const size_t among = size_t(replicas());
  return waiting_[index % among * size_t(in_flight()) + index / among];
}

std::span<const PackedBatch> BatchDispatcher::waiting_for(int replica) const {
  const size_t among = size_t(replicas()), first = size_t(replica) * size_t(in_flight());
  return std::span(waiting_).subspan(first, (count_ + among - 1 - size_t(replica)) / among);
}

void BatchDispatcher::infer(std::span<const PackedBatch> batches, std::vector<float>& logits) {
  logits.clear();
  if (stages_) return stages_->infer(batches, logits);
  if (!batches.empty()) engine_.infer(batches[0], logits);
}

// Starts the waiting micro-batch on the device before the host processes the logits of the one
// before it.
void BatchDispatcher::start(LogitsSink& sink) {
  PackedBatch& batch = started_[size_t(pending_.count())];
  std::swap(batch, waiting_[0]);
  count_ = 0;
  pending_.start(batch);
  if (pending_.count() == PendingLogits::kMost) take_oldest(sink);
}

void BatchDispatcher::take_oldest(LogitsSink& sink) {
  const float* logits = pending_.take();
  give(started_[0], logits, sink);
  std::rotate(started_.begin(), started_.begin() + 1, started_.end());
}

// One round: each replica computes its share of the waiting micro-batches.
void BatchDispatcher::flush(LogitsSink& sink) {
  if (count_ == 0) return;
  if (comm_.size() == 1 && pending_.possible()) return start(sink);
  std::vector<std::vector<uint8_t>> parts(size_t(comm_.size()));
  for (int rank = 1; rank < comm_.size(); ++rank) {
    parts[size_t(rank)] = to_bytes(waiting_for(replica_of(rank)));
  }
  comm_.scatter(parts);
  std::vector<float> own;
  infer(waiting_for(0), own);
  const std::vector<std::vector<uint8_t>> others = comm_.gather({});
  std::vector<std::vector<float>> logits(static_cast<size_t>(replicas()));
  for (int replica = 0; replica < replicas(); ++replica) {
    const int source = stages_ ? stages_->source_of_logits(replica) : replica;
    std::vector<float>& of_replica = logits[size_t(replica)];
    if (source == 0) {
      of_replica.swap(own);
      continue;
    }
    const std::vector<uint8_t>& bytes = others[size_t(source)];
    of_replica.resize(bytes.size() / sizeof(float));
    if (!bytes.empty()) std::memcpy(of_replica.data(), bytes.data(), bytes.size());
  }
  const Head head = engine_.table().head();
  std::vector<size_t> taken(logits.size());
  for (size_t i = 0; i < count_; ++i) {
    const PackedBatch& batch = waiting(i);
    const size_t replica = i % logits.size(), begin = taken[replica];
    taken[replica] += size_t(logit_floats(head, batch));
    FINETUNE_CHECK(taken[replica] <= logits[replica].size());
    give(batch, logits[replica].data() + begin, sink);
  }
  count_ = 0;
}

std::optional<int64_t> BatchDispatcher::evaluate(Evaluator& evaluator, int64_t micro_batch_tokens,
                                                 const std::function<bool(double)>& poll) {
  if (cache_) cache_->begin();
  count_ = given_ = 0;
  struct Drop {  // also after an exception or an early return
    ~Drop() { pending.drop(); }
    PendingLogits& pending;
  } drop{pending_};
  WindowPool rows(evaluator, engine_.table().head().outputs);
  TokenizedSamples waiting;
  int64_t samples = 0, done = 0;  // `done` counts the samples that must be computed
  for (bool more = true; more;) {
    const std::optional<SampleChunk> chunk = evaluator.next();
    more = chunk.has_value();
    if (more) {
      samples += chunk->samples.size();
      rows.expect(chunk->first_window);
      take(chunk->samples, waiting, rows);
    }
    std::vector<IndexRange> ranges = micro_batches(lengths_of(waiting), micro_batch_tokens);
    const bool all = !more || evaluator.answers_each_chunk();
    if (!all && !ranges.empty()) ranges.pop_back();  // later samples may still fill it
    for (IndexRange range : ranges) {
      const double share = double(done + range.begin) / double(done + waiting.size());
      if (!poll(evaluator.share() * share)) return std::nullopt;
      add(waiting, range, done, rows);
    }
    if (all) {
      flush(rows);
      while (pending_.count() > 0) take_oldest(rows);
    }
    if (ranges.empty()) continue;
    drop_first(ranges.back().end, waiting);
    done += ranges.back().end;
  }
  return samples;
}

void BatchDispatcher::done() {
  if (comm_.size() == 1) return;
  const int32_t end = int32_t(Message::end);
  std::vector<uint8_t> bytes(sizeof end);
  std::memcpy(bytes.data(), &end, sizeof end);
  comm_.scatter(std::vector<std::vector<uint8_t>>(size_t(comm_.size()), bytes));
}

std::vector<uint8_t> BatchDispatcher::next_round(Rank0 rank0) {
  if (rank0 == Rank0::has_samples) return comm_.scatter({});
  const Patience patience(comm_);
  return comm_.scatter({});
}

void BatchDispatcher::serve(Rank0 rank0) {
  comm_.note("evaluation", -1);
  std::vector<PackedBatch> batches(static_cast<size_t>(in_flight()));
  std::vector<int32_t> words;
  std::vector<float> logits;
  for (;;) {
    const std::vector<uint8_t> bytes = next_round(rank0);
    words.resize(bytes.size() / sizeof(int32_t));
    if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
    if (!words.empty() && words[0] == int32_t(Message::end)) return;
    size_t count = 0;
    for (std::span<const int32_t> left = words; !left.empty(); ++count) {
      const TokenizedSamples samples = take_samples(left);
      pack_all(samples, {0, samples.size()}, batches.at(count));
    }
    infer(std::span(batches).first(count), logits);
    comm_.gather({reinterpret_cast<const uint8_t*>(logits.data()), logits.size() * sizeof(float)});
  }
}

}  // namespace finetune
