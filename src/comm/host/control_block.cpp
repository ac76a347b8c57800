// Writes and reads what each process is at: its phase and step.
#include "comm/host/control_block.h"

#include <cstring>

#include "core/text/text.h"

namespace finetune {

void write_phase(ProcessSlot& slot, const char* phase, int64_t step) {
  char text[sizeof slot.phase] = {};
  std::strncpy(text, phase, sizeof text - 1);
  for (size_t i = 0; i < slot.phase.size(); ++i) {
    uint64_t word;
    std::memcpy(&word, text + i * sizeof word, sizeof word);
    slot.phase[i].store(word, std::memory_order_relaxed);
  }
  slot.step.store(step, std::memory_order_relaxed);
}

std::string read_phase(const ProcessSlot& slot) {
  char text[sizeof slot.phase + 1] = {};
  for (size_t i = 0; i < slot.phase.size(); ++i) {
    const uint64_t word = slot.phase[i].load(std::memory_order_relaxed);
    std::memcpy(text + i * sizeof word, &word, sizeof word);
  }
  const int64_t step = slot.step.load(std::memory_order_relaxed);
  std::string out = text;
  if (step >= 0) out += concat(", step ", step);
  return out;
}

}  // namespace finetune
