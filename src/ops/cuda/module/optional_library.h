// A shared library that a machine may lack: what needs it is refused there, all else works.
#pragma once

#include <dlfcn.h>

#include <string>

namespace finetune::cuda {

class OptionalLibrary {
 public:
  // Looks where the module's own libraries are found. `purpose`: who needs it, for `problem`.
  OptionalLibrary(const std::string& name, const std::string& purpose)
      : handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) problem_ = std::string(::dlerror()) + " (" + purpose + ")";
  }
  OptionalLibrary(const OptionalLibrary&) = delete;  // it stays open until the program ends

  // Null where there is no such library, or no such function in it.
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
