// The table of architectures, and lookups in it.
#include <algorithm>
#include <array>

#include "core/error.h"
#include "model/architecture.h"
#include "model/architectures/albert.h"
#include "model/architectures/bert.h"
#include "model/architectures/deberta.h"
#include "model/architectures/distilbert.h"
#include "model/architectures/electra.h"
#include "model/architectures/modernbert.h"
#include "model/architectures/mpnet.h"
#include "model/architectures/nomic_bert.h"
#include "model/architectures/roberta.h"

namespace finetune {
namespace {

constexpr std::array kArchitectures{
    kBertArchitecture,    kAlbertArchitecture,     kDebertaArchitecture,  kDistilBertArchitecture,
    kElectraArchitecture, kModernBertArchitecture, kMpnetArchitecture,    kNomicBertArchitecture,
    kRobertaArchitecture, kXlmRobertaArchitecture, kCamembertArchitecture};

const Module* find_module(const Architecture& architecture, Role role) {
  const auto& modules = architecture.modules;
  auto found = std::find_if(modules.begin(), modules.end(),
                            [&](const Module& module) { return module.role == role; });
  return found == modules.end() ? nullptr : &*found;
}

}  // namespace

std::string Architecture::module_of(Role role, LayerName layer) const {
  const Module* module = find_module(*this, role);
  FINETUNE_CHECK(module != nullptr);
  std::string name(module->name);
  for (int64_t number : {layer.number, layer.inner}) {
    if (const size_t at = name.find('*'); at != name.npos) {
      name.replace(at, 1, std::to_string(number));
    }
  }
  return name;
}

std::span<const Architecture> all_architectures() {
  return kArchitectures;
}

const Architecture* architecture_named(std::string_view model_type) {
  auto found = std::find_if(
      kArchitectures.begin(), kArchitectures.end(),
      [&](const Architecture& architecture) { return architecture.model_type == model_type; });
  return found == kArchitectures.end() ? nullptr : &*found;
}

}  // namespace finetune
