// Names the outputs of a model's classifier, by its config.json and the rows of its weight.
#pragma once

#include <memory>
#include <string_view>

#include "engine/engine.h"
#include "model/config.h"
#include "weights/weights.h"

namespace finetune {

// Sets config.labels for the classifier that `source` holds. A config without label names gives
// LABEL_0, LABEL_1, ... as in Hugging Face's config. If the number of names is not the number of
// the classifier's rows, labels becomes empty and labels_fault says both numbers. Nothing changes
// where there is no classifier.
void name_outputs(EncoderConfig& config, const WeightSource& source);

// Whether config.json names a class whose head answers a task that this program does not have, but
// whose tensors have the names of a head that it has.
bool names_foreign_head(const EncoderConfig& config);
// Whether it names a class with another of this program's heads whose tensors have the same names
// as those of `kind`.
bool names_other_head(const EncoderConfig& config, HeadKind kind);
// Whether either holds: tensors with the names of a head of this kind are another head's.
bool is_other_head(const EncoderConfig& config, HeadKind kind);
// Whether `source` holds a head of this kind, and not another one under its name.
bool holds_head(const EncoderConfig& config, const WeightSource& source, HeadKind kind);

// The advice if memory runs out, for with_memory_advice (core/failure.h).
inline constexpr std::string_view kModelAdvice =
    "while the model is read; a smaller model needs less";

// Opens the weights of `model`. Returns a source without tensors if it has none (open_model).
// Error(model): see open_weights.
std::unique_ptr<WeightSource> open_given_weights(const ModelFiles& model);
// The same, and names the outputs in the model's config.
std::unique_ptr<WeightSource> open_weights_of(ModelFiles& model);

}  // namespace finetune
