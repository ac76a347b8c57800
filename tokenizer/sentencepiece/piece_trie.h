// Longest-prefix matching of byte strings with a trie stored as a double array. (Aoe, "An efficient
// digital search algorithm by using a double-array structure", 1989.)
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace finetune {

class PieceTrie {
 public:
  // Takes keys and values (>= 0), sorted by key, without repeated or empty keys.
  void build(const std::vector<std::pair<std::string_view, int32_t>>& sorted);

  struct Match {
    int32_t value = -1;
    uint32_t length = 0;  // in bytes; 0: no match
  };
  // Returns the longest key that is a prefix of [p, end).
  Match longest(const char* p, const char* end) const {
    Match best;
    for_each_prefix(p, end, [&](int32_t value, uint32_t length) { best = {value, length}; });
    return best;
  }
  // Calls found(value, length) for every key that is a prefix of [p, end), short ones first.
  template <typename Found>
  void for_each_prefix(const char* p, const char* end, Found&& found) const {
    const Node* nodes = nodes_.data();
    uint32_t node = 0;
    for (const char* at = p; at < end; ++at) {
      uint32_t next = nodes[node].base + uint8_t(*at);
      if (nodes[next].parent != node) return;
      node = next;
      if (nodes[node].value >= 0) found(nodes[node].value, uint32_t(at + 1 - p));
    }
  }
  bool empty() const { return key_count_ == 0; }

 private:
  struct Node {
    uint32_t base = 0;  // the child for byte b is at base + b; a leaf has base 0
    uint32_t parent = kFree;
    int32_t value = -1;
  };
  static constexpr uint32_t kFree = UINT32_MAX;

  uint32_t place(const std::vector<uint8_t>& labels);

  std::vector<Node> nodes_ = std::vector<Node>(1024);
  uint32_t lowest_free_ = 257;
  uint32_t search_from_ = 257;
  size_t key_count_ = 0;
};

}  // namespace finetune
