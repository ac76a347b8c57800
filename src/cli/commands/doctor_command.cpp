// finetune doctor: hardware, libraries, code paths, MPI placement.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/step_bench.h"
#include "bench/yardstick.h"
#include "cli/command.h"
#include "cli/options/option_binding.h"
#include "cli/standard_output.h"
#include "cli/world.h"
#include "comm/communicator.h"
#include "core/files/file_kind.h"
#include "core/files/temporary_name.h"
#include "core/log.h"
#include "core/process_stats.h"
#include "core/switches.h"
#include "core/text/printable.h"
#include "core/text/text.h"
#include "core/threads/parallel.h"
#include "ops/backend.h"
#include "ops/cuda/host/cuda_module.h"
#include "train/layout/stages.h"
#include "train/options/table/option_table.h"
#include "train/run/layout_table.h"
#include "weights/hub_cache.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;

constexpr int kMostShownRanks = 64;

void line(std::string_view name, std::string_view value) {
  write_lines(concat(padded(std::string(name), 18), " ", value, "\n"));
}

std::string first_value(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    if (text.rfind(key, 0) != 0) continue;
    size_t colon = text.find(':');
    if (colon != std::string::npos)
      return std::string(trim(std::string_view(text).substr(colon + 1)));
  }
  return "unknown";
}

std::string cpu_features() {
  std::string flags = " " + first_value("/proc/cpuinfo", "flags") + " ";
  std::string out;
  for (const char* flag : {"avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16"}) {
    if (flags.find(concat(" ", flag, " ")) != std::string::npos)
      out += concat(out.empty() ? "" : " ", flag);
  }
  return out;
}

std::string placement() {
  if (!launched_rank()) return "not started by mpirun: one process";
  return concat("rank ", world().rank(), " of ", world().size(), ", ", available_cores(),
                " core(s) of this host");
}

struct DoctorOptions {
  TrainOptions train;  // tp, pp, placement
  std::string shape = "base";

  bool name_a_layout() const {
    return train.tp || train.pp || train.placement != TrainOptions().placement;
  }
};

const OptionRow<DoctorOptions> kDoctorRows[] = {
    {{.name = "shape",
      .group = kLayoutGroup,
      .help = "shape or directory of the model that the layout is for",
      .value = "tiny|minilm|base|large|DIR"},
     &DoctorOptions::shape},
};

// Prints the place in the layout of each process that mpirun started.
void tell_layout(const std::string& shape, const LayoutRun& run) {
  std::fflush(stdout);
  world().barrier();  // the other processes have printed their part
  if (world().rank() > 0) return;
  std::string text = concat("\n", shape, ":\n");
  for (const std::string& row : place_lines({run, host_names(world())}, kMostShownRanks)) {
    text += row + "\n";
  }
  for (const std::string& warning : layout_warnings(run)) {
    count_warning(warning);
    text += "warning: " + warning + "\n";
  }
  write_lines(text);
}

double free_mib(const fs::path& directory) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  return error ? 0 : double(space.available) / (1 << 20);
}

// Returns what this machine lacks for training a small model.
std::vector<std::string> lacks() {
  constexpr double kLeastMemory = 512, kLeastDisk = 100;  // MiB
  std::vector<std::string> found;
  const fs::path temporary = temporary_directory();
  if (const double memory = available_memory_mb(); memory > 0 && memory < kLeastMemory) {
    found.push_back(concat("memory (", format_fixed(memory, 0), " MiB are free)"));
  }
  if (::access(temporary.c_str(), W_OK | X_OK) != 0) {
    found.push_back(concat("a directory for temporary files ($TMPDIR, ", printable_path(temporary),
                           ", cannot be written)"));
  } else if (const double disk = free_mib(temporary); disk < kLeastDisk) {
    found.push_back(concat("disk for temporary files (", format_fixed(disk, 0), " MiB are free in ",
                           printable_path(temporary), ")"));
  }
  return found;
}

void tell_gpu() {
  const CudaModule& module = cuda_module();
  if (!module.functions) {
    line("CUDA module", module.problem);
    return;
  }
  char text[4096];
  bool usable = module.functions->describe(text, sizeof text) == 0;
  for (std::string_view part : split(text, '\n')) {
    size_t colon = part.find(": ");
    if (colon != std::string_view::npos) line(part.substr(0, colon), part.substr(colon + 2));
  }
  if (usable) {
    char message[256];
    module.functions->self_test(message, sizeof message);
    line("GPU self-test", message);
  }
}

void run() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  line("finetune", FINETUNE_VERSION);
  line("host", host);
  line("CPU", first_value("/proc/cpuinfo", "model name"));
  line("CPU features", cpu_features());
  line("cores", concat(available_cores(), " usable by this process"));
  for (const auto& [name, value] : host_facts()) {
    if (name != "memory") continue;
    line(name, concat(value, ", ", format_fixed(available_memory_mb(), 0), " MiB free"));
  }
  // The precision is the one that --precision auto chooses.
  line("code path",
       make_cpu_backend(cpu_multiplies_bf16_fast() ? DType::bf16 : DType::f32)->description());
  line("oneDNN", onednn_version().value_or("not built in (bench compares with it)"));
  line("processes", placement());
  for (const Switch& each : kSwitches) {
    if (const char* value = each.value()) line(each.name, concat(value, " (", each.meaning, ")"));
  }
  const fs::path temporary = temporary_directory();
  line("temporary files",
       concat(printable_path(temporary), ", ", format_fixed(free_mib(temporary), 0), " MiB free"));
  line("model cache", hub_cache().string());
  tell_gpu();
  const std::vector<std::string> missing = lacks();
  line("verdict", missing.empty() ? "everything that training needs is there"
                                  : concat("training lacks ", join(missing, ", ")));
}

}  // namespace

void add_doctor_command(Subcommand program, int&) {
  const Subcommand command =
      program.add_subcommand("doctor", "Show hardware, libraries and code paths of this machine");
  auto options = std::make_shared<DoctorOptions>();
  add_options(command, train_options(), options->train, {.command = commands::doctor});
  add_options(command, kDoctorRows, *options);
  command.footer(
      "Examples:\n"
      "  finetune doctor\n"
      "  mpirun -n 8 finetune doctor --pp 2 --tp 2     each process's replica and stage\n"
      "\n"
      "With --tp, --pp or --placement the table of the layout's ranks follows, and a warning "
      "where\n"
      "tensor ranks are on several hosts.");
  command.callback([options] {
    std::optional<LayoutRun> layout;  // its errors come before all output
    if (options->name_a_layout()) {
      layout = layout_run(world(), shape_config(options->shape), options->train);
    }
    run();
    if (layout) tell_layout(options->shape, *layout);
  });
}

}  // namespace finetune
