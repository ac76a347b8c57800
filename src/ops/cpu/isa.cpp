// Detects instruction sets, honours FINETUNE_ISA, and limits oneDNN to the same.
#include "ops/cpu/isa.h"

#include <initializer_list>

#include "core/error.h"
#include "core/switches.h"
#include "hwy/targets.h"
#include "ops/cpu/gemm/bf16_gemm.h"

namespace finetune {
namespace {

bool machine_has(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return (hwy::SupportedTargets() & HWY_AVX2) != 0;
    case Isa::avx512:
      return (hwy::SupportedTargets() & HWY_AVX3) != 0;
    case Isa::avx512_bf16:
      return machine_has(Isa::avx512) && __builtin_cpu_supports("avx512bf16");
    case Isa::amx:
      return machine_has(Isa::avx512_bf16) && cpu::enable_tile_registers();
  }
  return false;
}

Isa best_isa() {
  for (Isa isa : {Isa::amx, Isa::avx512_bf16, Isa::avx512}) {
    if (machine_has(isa)) return isa;
  }
  return Isa::avx2;
}

Isa named_isa(const std::string& name) {
  if (name == "avx2") return Isa::avx2;
  if (name == "avx512") return Isa::avx512;
  if (name == "avx512_bf16") return Isa::avx512_bf16;
  if (name == "amx") return Isa::amx;
  throw usage_error(kIsaSwitch.name, "=", name, " is unknown (use ", kIsaSwitch.values, ")");
}

Isa wanted_isa() {
  const char* requested = kIsaSwitch.value();
  if (!requested) return best_isa();
  const Isa isa = named_isa(requested);
  if (!machine_has(isa)) {
    throw usage_error(kIsaSwitch.name, "=", requested, " is not possible: this machine has no ",
                      name_of(isa), " (its best is ", name_of(best_isa()), ")");
  }
  if (isa == Isa::avx2) {
    hwy::DisableTargets(~int64_t{HWY_AVX2});
    hwy::GetChosenTarget().DeInit();
  }
  return isa;
}

Isa decide() {
  const Isa isa = wanted_isa();
  cpu::use_tile_registers(isa == Isa::amx);
  return isa;
}

}  // namespace

Isa select_isa() {
  static const Isa isa = decide();
  return isa;
}

bool multiplies_bf16(Isa isa) {
  return isa == Isa::avx512_bf16 || isa == Isa::amx;
}

bool multiplies_bf16_faster(Isa isa) {
  return isa == Isa::amx || (isa == Isa::avx512_bf16 && __builtin_cpu_is("amd"));
}

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return "AVX2";
    case Isa::avx512:
      return "AVX-512";
    case Isa::avx512_bf16:
      return "AVX-512 with BF16";
    case Isa::amx:
      return "AVX-512 with AMX";
  }
  return "";
}

}  // namespace finetune
