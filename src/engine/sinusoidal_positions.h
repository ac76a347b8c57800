// Initial position embeddings of a DistilBERT with sinusoidal_pos_embds and random weights. They
// are trained like any others.
#pragma once

#include "model/config.h"
#include "model/parameters.h"

namespace finetune {

// Writes row p, columns 2i and 2i + 1: sine and cosine of p / 10000^(2i / width) (Vaswani et al.,
// 2017). Does nothing for another config, and for a table without embeddings.
void set_sinusoidal_positions(const EncoderConfig& config, const ParameterTable& table,
                              float* arena);

}  // namespace finetune
