// Merges pairs by rank: short words by a scan, long words with a heap over a linked list.
#include "tokenizer/bpe/merges.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

namespace finetune::bpe {
namespace {

constexpr size_t kScanned = 64;  // the most symbols of a word whose lowest pair a scan finds

using Merge = MergeTable::Merge;

void merge_short(const MergeTable& table, std::vector<Symbol>& symbols) {
  Merge pairs[kScanned];  // pairs[i]: the merge of symbols i and i + 1
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = table.find(symbols[i].id, symbols[i + 1].id);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == MergeTable::kNone) break;
    symbols[best] = {pairs[best].id, symbols[best + 1].end};
    for (size_t i = best + 1; i + 1 < count; ++i) {
      symbols[i] = symbols[i + 1];
      pairs[i - 1] = pairs[i];
    }
    --count;
    if (best > 0) pairs[best - 1] = table.find(symbols[best - 1].id, symbols[best].id);
    if (best + 1 < count) pairs[best] = table.find(symbols[best].id, symbols[best + 1].id);
  }
  symbols.resize(count);
}

// Symbols keep their places; `next` and `before` link those that are left.
class LongWord {
 public:
  LongWord(const MergeTable& table, std::vector<Symbol>& symbols)
      : table_(table),
        symbols_(symbols),
        pairs_(symbols.size()),
        next_(symbols.size()),
        before_(symbols.size()) {
    for (uint32_t i = 0; i < symbols.size(); ++i) {
      next_[i] = i + 1;
      before_[i] = i - 1;
    }
    for (uint32_t i = 0; i < symbols.size(); ++i) look_up(i);
  }

  void merge() {
    while (!queue_.empty()) {
      const uint64_t top = queue_.top();
      queue_.pop();
      const uint32_t at = uint32_t(top);
      if (pairs_[at].rank != uint32_t(top >> 32)) continue;  // the pair has changed since
      const uint32_t right = next_[at];
      symbols_[at] = {pairs_[at].id, symbols_[right].end};
      pairs_[right] = {};
      next_[at] = next_[right];
      if (next_[at] < symbols_.size()) before_[next_[at]] = at;
      look_up(at);
      if (at > 0) look_up(before_[at]);
    }
    size_t count = 0;
    for (uint32_t i = 0; i < symbols_.size(); i = next_[i]) symbols_[count++] = symbols_[i];
    symbols_.resize(count);
  }

 private:
  void look_up(uint32_t at) {
    const uint32_t right = next_[at];
    pairs_[at] =
        right < symbols_.size() ? table_.find(symbols_[at].id, symbols_[right].id) : Merge{};
    if (pairs_[at].rank != MergeTable::kNone) queue_.push(uint64_t(pairs_[at].rank) << 32 | at);
  }

  const MergeTable& table_;
  std::vector<Symbol>& symbols_;
  std::vector<Merge> pairs_;
  std::vector<uint32_t> next_, before_;
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue_;  // rank, place
};

}  // namespace

MergeTable::MergeTable(size_t merges) : slots_(std::bit_ceil(merges * 2 + 1)) {}

void MergeTable::add(int32_t left, int32_t right, uint32_t rank, int32_t id) {
  const uint64_t key = key_of(left, right);
  size_t at = home(key);
  while (slots_[at].key != kEmpty && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = {key, {rank, id}};
}

void merge_symbols(const MergeTable& merges, std::vector<Symbol>& symbols) {
  if (symbols.size() <= kScanned) return merge_short(merges, symbols);
  LongWord(merges, symbols).merge();
}

}  // namespace finetune::bpe
