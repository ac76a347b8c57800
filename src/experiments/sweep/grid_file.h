// Reads grid.toml: the options that all runs of a sweep share, and in its table [sweep] the options
// that differ.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/options/config_file.h"

namespace finetune {

// { min = 1e-5, max = 1e-3, log = true, draws = 8, seed = 7 }
struct SweptRange {
  double least = 0, most = 0;    // both included
  bool log = false;              // uniform in the logarithm
  std::optional<int64_t> draws;  // none: [sweep]'s `draws`, together with other options
  std::optional<uint64_t> seed;  // none: [sweep]'s draw-seed
};

// A line of [sweep]: a list of values, or a range. A value has several words if the option takes
// several.
struct SweptOption {
  std::string name;
  int line = 0;
  std::vector<std::vector<std::string>> values;
  std::optional<SweptRange> range;
};

struct GridFile {
  std::string name;  // for messages
  std::vector<ConfigEntry> fixed;
  std::vector<SweptOption> swept;
  std::optional<int64_t> draws;
  uint64_t draw_seed = 42;
};

// Error(usage), naming file and line: bad syntax; an option that train does not have, that occurs
// twice, or that belongs to the whole sweep; an empty list, an empty range, no table [sweep].
GridFile read_grid(const std::filesystem::path& path);
GridFile parse_grid(std::string_view text, const std::string& file_name);

}  // namespace finetune
