// The formats of weight files, recognised by their first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

namespace finetune {

enum class WeightFormat : uint8_t { safetensors, torch_zip, torch_legacy, hdf5 };

inline constexpr size_t kFormatBytes = 512;  // the first bytes that decide

// `begin`: the first kFormatBytes of file `path`, or all if it has fewer. Error(model) if they are
// of no format.
WeightFormat format_of(const std::filesystem::path& path, std::string_view begin);

}  // namespace finetune
