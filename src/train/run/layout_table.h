// A run's layout for people and as a file: each rank's place, host and part of the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "train/plan/layout_forecast.h"

namespace finetune {

// What the functions below describe. They read no weights and do not communicate.
struct LayoutTable {
  const LayoutRun& run;
  std::vector<std::string> hosts;  // the name of each
};

// host0, host1, ...: for hosts whose names are not known.
std::vector<std::string> numbered_hosts(const std::vector<int>& first_rank);

// Describes the layout, with a row for each of the first ranks.
std::vector<std::string> place_lines(const LayoutTable& table, int most_ranks = 16);
// The same for the log, with the stages and the batch.
std::vector<std::string> layout_lines(const LayoutTable& table, int most_ranks = 16);
// Warnings about a valid but slow layout, one line each.
std::vector<std::string> layout_warnings(const LayoutRun& run);

// "layers 0-5", "embeddings, layers 0-2, 6-8", "layers 6-11, head, shards 0-1 of 4".
std::string words_of(const ModelPart& part);

// The layout's numbers; then for each rank coordinates, host, layers, shards and parameters.
std::string layout_json(const LayoutTable& table);
void write_layout(const std::filesystem::path& path, const LayoutTable& table);

}  // namespace finetune
