// Ends the program with a clear message if the processor is too old or the stack too small. All
// other code needs x86-64-v3 (meson.build), even code that runs before main. This file is compiled
// for any x86-64, calls only code that is too, and runs before all other code.
#include <cpuid.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>

namespace {

constexpr int kExitCode = 5;  // ExitCode::device, without including its header

constexpr char kNoAvx2[] =
    "finetune: error: this processor has no AVX2 (with FMA, BMI and F16C: x86-64-v3), which the "
    "program needs; processors since Intel's Haswell (2013) and AMD's Zen (2017) have it\n";

// Threads get stacks of the same size. They work with less than 100 KiB.
constexpr rlim_t kLeastStack = 256 << 10;
constexpr char kNoStack[] =
    "finetune: error: the limit of the stack is below the 256 KiB that the program needs; "
    "ulimit -s 8192 is usual\n";

// Reads cpuid, since clang 14 has no __builtin_cpu_supports("f16c").
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

bool has_instructions() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_f16c();
}

bool has_stack() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeastStack;
}

template <size_t kSize>
[[noreturn]] void end_with(const char (&line)[kSize]) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, kSize - 1);
  ::_exit(kExitCode);
}

void check_start(int, char**, char**) {
  if (!has_instructions()) end_with(kNoAvx2);
  if (!has_stack()) end_with(kNoStack);
}

// Called before the constructors of libraries and of the program.
using Entry = void (*)(int, char**, char**);
__attribute__((section(".preinit_array"), used)) const Entry kEntry = check_start;

}  // namespace
