// Ends the program with a clear line where the processor lacks the instructions that it is made of.
// The least is x86-64-v3 (meson.build), which the compiler uses everywhere, also before main. This
// file is compiled for any x86-64, calls nothing that is not, and comes before all of that.
#include <unistd.h>

namespace {

constexpr int kExitCode = 5;  // ExitCode::device, whose header is for the others

constexpr char kMessage[] =
    "finetune: error: this processor has no AVX2 (with FMA, BMI and F16C: x86-64-v3), which the "
    "program needs; processors since Intel's Haswell (2013) and AMD's Zen (2017) have it\n";

bool is_sufficient() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("f16c");
}

void check_processor(int, char**, char**) {
  if (is_sufficient()) return;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  ::_exit(kExitCode);
}

// Called before the constructors of libraries and of the program.
using Entry = void (*)(int, char**, char**);
__attribute__((section(".preinit_array"), used)) const Entry kEntry = check_processor;

}  // namespace
