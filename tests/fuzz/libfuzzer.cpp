// The entry points that libFuzzer and similar engines call. Each program has one target,
// FUZZ_TARGET.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fuzz/target.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace {

using finetune::fuzz::Target;

const Target& only_target() {
  for (const Target& target : finetune::fuzz::targets()) {
    if (std::strcmp(target.name, FUZZ_TARGET) == 0) return target;
  }
  std::abort();
}

std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    finetune::fuzz::run_target(only_target(), text_of(data, size));
  } catch (const finetune::fuzz::Finding& finding) {
    std::fprintf(stderr, "%s: %s\n", only_target().name, finding.what.c_str());
    std::abort();
  }
  return 0;
}

// One change in eight is left as it is: what is said of wrong checksums is tested, too.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  const Target& target = only_target();
  if (!target.mend || seed % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string before(text_of(data, size));
  std::string changed(text_of(data, LLVMFuzzerMutate(data, size, most)));
  target.mend(before, changed);
  if (changed.size() > most) changed.resize(most);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
