// A thread's cache of recently encoded words: one cache line for each word.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace finetune {

struct alignas(64) CachedWord {
  static constexpr size_t kBytes = 32, kTokens = 5;
  char word[kBytes] = {};
  int32_t ids[kTokens];
  uint32_t owner = 0;  // the tokenizer's instance; 0: empty
  uint8_t ends[kTokens];
  uint8_t length = 0;
  uint8_t tokens = 0;
};
static_assert(sizeof(CachedWord) == 64);

// Returns a number that tells one tokenizer's words in a thread's cache from those of others.
inline uint32_t next_tokenizer_instance() {
  static std::atomic<uint32_t> instances{0};
  return ++instances;
}

class WordCache {
 public:
  // `words` is a power of two.
  explicit WordCache(size_t words) : slots_(words) {}

  // Calls push(id, begin, end) for each token; begin and end are bytes of the text that make()
  // encodes. make() is called if the word is not cached, and returns its tokens, each with an id
  // and an end.
  template <typename Make, typename Push>
  void encode(std::string_view word, uint32_t owner, Make&& make, Push&& push) {
    Place place;
    find(word, owner, place);
    if (place.found) {
      const CachedWord& cached = *place.slot;
      for (size_t i = 0; i < cached.tokens; ++i) {
        push(cached.ids[i], i ? cached.ends[i - 1] : 0, cached.ends[i]);
      }
      return;
    }
    const auto& tokens = make();
    uint32_t begin = 0;
    for (const auto& token : tokens) {
      push(token.id, begin, token.end);
      begin = token.end;
    }
    store(place, word.size(), owner, tokens);
  }

 private:
  // The slot where a word is or may be stored; null if the word is too long.
  struct Place {
    CachedWord* slot = nullptr;
    bool found = false;
    char key[CachedWord::kBytes] = {};
  };
  void find(std::string_view word, uint32_t owner, Place& place) {
    if (word.size() > sizeof place.key) return;
    std::memcpy(place.key, word.data(), word.size());
    place.slot = &slots_[home(place.key)];
    place.found = place.slot->owner == owner && place.slot->length == word.size() &&
                  std::memcmp(place.slot->word, place.key, sizeof place.key) == 0;
  }
  // Tokens have an id and an end, in bytes of the word. Does nothing if they do not fit.
  template <typename Token>
  static void store(const Place& place, size_t length, uint32_t owner,
                    const std::vector<Token>& tokens) {
    if (place.slot == nullptr || tokens.size() > CachedWord::kTokens) return;
    CachedWord& slot = *place.slot;
    std::memcpy(slot.word, place.key, sizeof place.key);
    slot.owner = owner;
    slot.length = uint8_t(length);
    slot.tokens = uint8_t(tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      slot.ids[i] = tokens[i].id;
      slot.ends[i] = uint8_t(tokens[i].end);
    }
  }

  size_t home(const char (&word)[CachedWord::kBytes]) const {
    uint64_t hash = 0;
    for (size_t i = 0; i < CachedWord::kBytes; i += 8) {
      uint64_t part;
      std::memcpy(&part, word + i, 8);
      hash = (hash ^ part) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    return hash & (slots_.size() - 1);
  }

  std::vector<CachedWord> slots_;
};

}  // namespace finetune
