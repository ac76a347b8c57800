// Maps tensor names of PyTorch, Keras and TensorFlow to Hugging Face's.
#include "weights/names.h"

#include <span>

#include "core/text/ascii.h"
#include "core/text/text.h"

namespace finetune {
namespace {

bool starts_with_any(std::string_view text, std::span<const std::string_view> beginnings) {
  for (std::string_view beginning : beginnings) {
    if (text.starts_with(beginning)) return true;
  }
  return false;
}

bool replace_ending(std::string& text, std::string_view ending, std::string_view by) {
  if (!text.ends_with(ending)) return false;
  text.replace(text.size() - ending.size(), ending.size(), by);
  return true;
}

// Whether fine-tuning never reads the tensor.
bool unused(std::string_view name, const TensorNames& names) {
  if (starts_with_any(name, names.unused)) return true;
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return last == "position_ids" || last == "token_type_ids";
}

std::string_view without(std::string_view prefix, std::string_view name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

// Whether the part is like "layer_0": characters other than digits, one underscore, digits.
bool is_numbered(std::string_view part) {
  size_t underscore = part.find('_');
  if (underscore == 0 || underscore == std::string_view::npos || underscore + 1 == part.size()) {
    return false;
  }
  for (size_t i = 0; i < part.size(); ++i) {
    if (i != underscore && is_digit(part[i]) != (i > underscore)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::optional<std::string>> canonical_names(const std::vector<std::string>& stored,
                                                        const TensorNames& names,
                                                        std::string_view wrapper) {
  bool prefixed = false, has_bias = false;
  for (const std::string& name : stored) {
    prefixed |= without(wrapper, name).starts_with(names.base_prefix);
    has_bias |= without(wrapper, name) == names.decoder_bias;
  }
  std::vector<std::optional<std::string>> result;
  result.reserve(stored.size());
  for (const std::string& in_file : stored) {
    std::string name(without(wrapper, in_file));
    if (!names.base_prefix.empty())
      replace_all(name, "._orig_mod.", ".");  // torch.compile on a single layer
    if (!has_bias && name == names.other_decoder_bias) name = names.decoder_bias;
    if (unused(name, names)) {
      result.emplace_back();
      continue;
    }
    if (!prefixed && starts_with_any(name, names.bare_beginnings)) {
      name.insert(0, names.base_prefix);
    }
    if (!replace_ending(name, "LayerNorm.gamma", "LayerNorm.weight")) {
      replace_ending(name, "LayerNorm.beta", "LayerNorm.bias");
    }
    result.emplace_back(std::move(name));
  }
  return result;
}

TensorflowName from_keras_name(std::string_view stored) {
  std::string name(stored.substr(0, stored.find(':')));
  replace_all(name, "_._", "/");
  TensorflowName result;
  std::vector<std::string> parts;
  for (std::string_view part : split(name, '/')) {
    size_t scope = part.find("___");  // "mlm___cls": use the part after it
    if (scope != std::string_view::npos) part.remove_prefix(scope + 3);
    if (!part.empty()) parts.emplace_back(part);
  }
  if (parts.size() > 1) parts.erase(parts.begin());  // the model's own name
  if (!parts.empty()) {
    std::string& last = parts.back();
    result.transpose = last == "kernel";
    if (last == "kernel" || last == "embeddings" || last == "gamma") last = "weight";
    if (last == "beta") last = "bias";
  }
  result.name = join(parts, ".");
  return result;
}

std::optional<TensorflowName> from_checkpoint_name(std::string_view stored) {
  if (stored == "output_weights") return TensorflowName{"classifier.weight", false};
  if (stored == "output_bias") return TensorflowName{"classifier.bias", false};
  if (stored == "cls/squad/output_weights") return TensorflowName{"qa_outputs.weight", false};
  if (stored == "cls/squad/output_bias") return TensorflowName{"qa_outputs.bias", false};
  TensorflowName result;
  std::vector<std::string> parts;
  for (std::string_view part : split(stored, '/')) {
    if (part == "adam_m" || part == "adam_v" || part == "global_step" ||
        part.starts_with("AdamWeightDecayOptimizer")) {
      return std::nullopt;
    }
    result.transpose = part == "kernel";
    if (part == "kernel" || part == "gamma" || part == "output_weights") {
      parts.emplace_back("weight");
    } else if (part == "beta" || part == "output_bias") {
      parts.emplace_back("bias");
    } else if (is_numbered(part)) {
      size_t underscore = part.find('_');
      parts.emplace_back(part.substr(0, underscore));
      parts.emplace_back(part.substr(underscore + 1));
    } else {
      parts.emplace_back(part);
    }
  }
  if (!parts.empty() && parts.back().ends_with("_embeddings")) parts.emplace_back("weight");
  result.name = join(parts, ".");
  return result;
}

}  // namespace finetune
