// A shared library that a machine may lack; only what needs it is then refused.
#pragma once

#include <dlfcn.h>

#include <string>

namespace finetune::cuda {

class OptionalLibrary {
 public:
  // Searches where the module's own libraries are found. `purpose`: the user of the library, for
  // `problem`.
  OptionalLibrary(const std::string& name, const std::string& purpose)
      : handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) problem_ = std::string(::dlerror()) + " (" + purpose + ")";
  }
  OptionalLibrary(const OptionalLibrary&) = delete;  // it stays open until the program ends

  // Returns null if the library or the function is missing.
  template <class Function>
  Function* function(const char* name) const {
    return handle_ ? reinterpret_cast<Function*>(::dlsym(handle_, name)) : nullptr;
  }
  // Why it could not be opened; "" if it was.
  const std::string& problem() const { return problem_; }

 private:
  void* handle_;
  std::string problem_;
};

}  // namespace finetune::cuda
