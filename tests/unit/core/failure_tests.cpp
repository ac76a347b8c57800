// Exceptions of the language and of libraries become errors of the program.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "core/failure.h"

using namespace finetune;

namespace {

template <typename Action>
Error error_from(Action action) {
  try {
    action();
  } catch (const std::exception& failure) {
    return error_of(failure, "; advice");
  }
  return data_error("nothing was thrown");
}

}  // namespace

TEST_CASE("memory that runs out is a matter of the machine") {
  auto none = [](auto action) {
    const Error error = error_from(action);
    return error.code() == ExitCode::device && std::string(error.what()) == "out of memory; advice";
  };
  CHECK(none([] { throw std::bad_alloc(); }));
  CHECK(none([] { std::vector<char>().reserve(SIZE_MAX); }));             // length_error
  CHECK(none([] { (void)std::string("x").append(SIZE_MAX - 1, 'x'); }));  // the same
  volatile size_t most = SIZE_MAX;
  CHECK(none([&] { delete[] new double[most]; }));  // bad_array_new_length
}

TEST_CASE("threads and memory that the system does not give are a matter of the machine") {
  const auto of = [](std::errc code) {
    return error_from([&] { throw std::system_error(std::make_error_code(code), "thread"); });
  };
  const Error memory = of(std::errc::not_enough_memory);
  CHECK(memory.code() == ExitCode::device);
  CHECK(std::string(memory.what()).ends_with("; advice"));
  const Error thread = of(std::errc::resource_unavailable_try_again);
  CHECK(thread.code() == ExitCode::device);
  CHECK(
      std::string(thread.what()).ends_with("(the limit of processes and threads, see ulimit -u)"));
  const Error other = error_from(
      [] { throw std::system_error(std::make_error_code(std::errc::invalid_argument)); });
  CHECK(other.code() == ExitCode::internal);
}

TEST_CASE("errors of the program are passed on unchanged") {
  const Error error = error_from([] { throw model_error("a.bin: is damaged"); });
  CHECK(error.code() == ExitCode::model);
  CHECK(std::string(error.what()) == "a.bin: is damaged");
  CHECK(error_from([] { throw std::runtime_error("odd"); }).code() == ExitCode::internal);
}

TEST_CASE("an out-of-memory error names the part of the work and a remedy") {
  const auto message = [](const std::function<int()>& action) -> std::string {
    try {
      return std::to_string(with_memory_advice("while it is read; less needs less", action));
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::device);
      return error.what();
    }
  };
  CHECK(message([] { return 3; }) == "3");
  CHECK(message([]() -> int { throw std::bad_alloc(); }) ==
        "out of memory while it is read; less needs less");
  CHECK(message([]() -> int { throw device_error("its own"); }) == "its own");
}
