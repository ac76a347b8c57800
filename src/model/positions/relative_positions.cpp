// Projects the table of relative positions in each layer; forward and backward pass.
#include "model/positions/relative_positions.h"

#include <algorithm>
#include <vector>

#include "model/passes/attention_block.h"

namespace finetune {
namespace {

// The `index`-th third of a fused projection.
Slot part_of(const Slot& fused, int64_t index) {
  if (fused.rows == 1) return {fused.offset + index * (fused.cols / 3), 1, fused.cols / 3};
  const int64_t rows = fused.rows / 3, before = index * rows * fused.cols;
  return {fused.offset + floats_of(before, fused.dtype), rows, fused.cols, fused.dtype};
}

}  // namespace

// Uploads the row of each distance, then the rows' names for dropout: their numbers, and zeros.
RelativeTables::RelativeTables(Backend& backend, const EncoderConfig& config, int64_t tokens) {
  if (!config.relative.on() || tokens == 0) return;
  span_ = longest_sequence(config, tokens);
  table_rows_ = config.relative.rows();
  std::vector<int32_t> host;
  for (int64_t d = 1 - span_; d < span_; ++d) host.push_back(int32_t(config.relative.row_of(d)));
  for (int64_t r = 0; r < table_rows_; ++r) host.push_back(int32_t(r));
  host.resize(host.size() + size_t(table_rows_));
  memory_ = backend.allocate(host.size() * sizeof(int32_t));
  backend.upload(memory_.get(), host.data(), host.size() * sizeof(int32_t));
}

int64_t RelativeTables::floats(const EncoderConfig& config, int64_t tokens) {
  if (!config.relative.on() || tokens == 0) return 0;
  return 2 * longest_sequence(config, tokens) - 1 + 2 * config.relative.rows();
}

RelativeRows RelativeTables::rows(int64_t first) const {
  return {static_cast<const int32_t*>(memory_.get()), span_, first};
}

RowNames RelativeTables::names(int64_t first) const {
  const auto* numbers = static_cast<const uint32_t*>(memory_.get()) + 2 * span_ - 1;
  return {numbers + first, numbers + table_rows_};
}

RelativeAttention::RelativeAttention(const LayerPass& pass, size_t shard, float* weights)
    : pass_(pass),
      shard_(shard),
      weights_(weights),
      rows_(pass.config.relative, pass.batch.segments().max_length) {
  const RelativeBlock& relative = pass.config.relative;
  const RelativeOffsets& buffers = *pass.bias.buffers;
  const LayerSlots& s = pass.shards[shard];
  const bool own = relative.own_weights;
  if (relative.of_queries) {
    sides_[0] = {own ? s.position_key : part_of(s.qkv_weight, 1),
                 own ? s.position_key_bias : part_of(s.qkv_bias, 1), own, buffers.keys,
                 buffers.dkeys};
  }
  if (relative.of_keys) {
    sides_[1] = {own ? s.position_query : part_of(s.qkv_weight, 0),
                 own ? s.position_query_bias : part_of(s.qkv_bias, 0), own, buffers.queries,
                 buffers.dqueries};
  }
}

Tensor RelativeAttention::at(int64_t place, int64_t width) const {
  return pass_.at(place, rows_.count, width);
}

// The table's rows in use, after the layer's dropout.
Tensor RelativeAttention::dropped() const {
  const LayerBias& bias = pass_.bias;
  const int64_t h = pass_.config.hidden_size;
  Tensor table = at(bias.relative + rows_.first * h, h);
  if (!bias.relative_dropout.on()) return table;
  Tensor to = at(bias.buffers->dropped, h);
  pass_.backend.dropout(table, bias.relative_dropout, bias.tables->names(rows_.first), to);
  return to;
}

void RelativeAttention::project() const {
  const Tensor table = dropped();
  for (const Side& side : sides_) {
    if (side.weight.rows == 0) continue;
    pass_.backend.linear(table, side.weight.in(weights_), side.bias.in(weights_),
                         at(side.values, side.weight.rows));
  }
}

template <typename Body>
void RelativeAttention::for_heads(const Heads& heads, const Body& body) const {
  const AttentionShape whole = attention_shape(pass_, shard_);
  const int64_t longest = whole.keys.max_length, of_head = heads.q.rows * longest;
  const RelativeOffsets& buffers = *pass_.bias.buffers;
  const int64_t together = std::clamp<int64_t>(buffers.score_floats / of_head, 1, whole.heads);
  for (int64_t first = 0; first < whole.heads; first += together) {
    AttentionShape shape = whole;
    shape.heads = std::min(together, whole.heads - first);
    shape.first_head += first;
    const int64_t begin = first * shape.head_size, width = shape.heads * shape.head_size;
    const auto part = [&](Tensor x) { return x ? x.columns(begin, width) : x; };
    Tensor tables[2], scores = pass_.at(buffers.scores, shape.heads * heads.q.rows, longest);
    for (int i = 0; i < 2; ++i) {
      if (sides_[i].weight.rows > 0) tables[i] = part(at(sides_[i].values, sides_[i].weight.rows));
    }
    pass_.backend.pair_scores(shape, pass_.bias.tables->rows(rows_.first), part(heads.q),
                              part(heads.k), tables[0], tables[1], scores);
    shape.bias.values = scores.f32();
    shape.bias.span = longest;
    shape.bias.query_rows = heads.q.rows;
    body(shape, first, part, tables, scores);
  }
}

void RelativeAttention::forward(const Heads& heads, Tensor context, Tensor log_sums) const {
  project();
  for_heads(heads, [&](const AttentionShape& shape, int64_t first, const auto& part,
                       const Tensor(&)[2], Tensor) {
    pass_.backend.attention(shape, pass_.dropout.attention, part(heads.q), part(heads.k),
                            part(heads.v), part(context),
                            log_sums ? log_sums.rows_from(first, shape.heads) : log_sums);
  });
}

void RelativeAttention::backward(const Heads& heads, const Heads& dheads, Tensor context,
                                 Tensor dcontext, Tensor log_sums) const {
  project();
  for_heads(heads, [&](AttentionShape& shape, int64_t first, const auto& part,
                       const Tensor(&tables)[2], Tensor scores) {
    Backend& backend = pass_.backend;
    shape.bias.gradient = scores.f32();  // overwrites the scores
    backend.attention_backward(shape, pass_.dropout.attention, part(heads.q), part(heads.k),
                               part(heads.v), part(context), log_sums.rows_from(first, shape.heads),
                               part(dcontext), part(dheads.q), part(dheads.k), part(dheads.v));
    Tensor gradients[2];
    for (int i = 0; i < 2; ++i) {
      const Side& side = sides_[i];
      if (side.weight.rows > 0) gradients[i] = part(at(side.gradient, side.weight.rows));
    }
    backend.pair_scores_backward(shape, pass_.bias.tables->rows(rows_.first), scores, part(heads.q),
                                 part(heads.k), tables[0], tables[1], part(dheads.q),
                                 part(dheads.k), gradients[0], gradients[1]);
  });
}

void RelativeAttention::project_back(float* arena) const {
  Backend& backend = pass_.backend;
  const LayerBias& bias = pass_.bias;
  const int64_t h = pass_.config.hidden_size, table_rows = pass_.config.relative.rows();
  const Tensor table = dropped(), dtable = at(bias.buffers->gradient, h);
  bool is_first = true;
  for (const Side& side : sides_) {
    if (side.weight.rows == 0) continue;
    const Tensor gradient = at(side.gradient, side.weight.rows);
    if (bias.relative_gradient != kAbsent) {
      backend.linear_backward_input(gradient, side.weight.in(weights_), dtable, !is_first);
      is_first = false;
    }
    backend.linear_backward_weight(gradient, table, side.weight.in(arena), side.bias.in(arena),
                                   !side.own || pass_.accumulate);
  }
  if (bias.relative_gradient == kAbsent) return;
  if (bias.relative_dropout.on()) {
    backend.dropout(dtable, bias.relative_dropout, bias.tables->names(rows_.first), dtable);
  }
  const int64_t place = bias.relative_gradient + int64_t(shard_) * table_rows * h;
  if (!bias.accumulate) backend.fill_zero(pass_.at(place, table_rows, h));
  backend.add(dtable, at(place + rows_.first * h, h));
}

}  // namespace finetune
