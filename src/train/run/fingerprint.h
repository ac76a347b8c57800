// SHA-256 of data and model files, computed during the training by one thread of low priority. It
// reads in small pieces, so it needs little memory.
#pragma once

#include <atomic>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "data/input_file.h"

namespace finetune {

// One file: what sha256sum prints. Several: the sha256 of their sums in order, one per line (as
// `sha256sum FILES | cut -c1-64 | sha256sum` prints). None: empty.
class Fingerprint {
 public:
  // Starts. `code`: the exit code of its errors, for data or model.
  explicit Fingerprint(std::vector<InputFile> files, ExitCode code = ExitCode::data);
  ~Fingerprint();  // stops early if still at work
  Fingerprint(const Fingerprint&) = delete;
  Fingerprint& operator=(const Fingerprint&) = delete;

  bool finished() const { return finished_; }
  // Waits. Error(code), naming a file that cannot be read, or that can be read only once.
  const std::string& result();

 private:
  void work();
  std::string hash_file(const InputFile& file);

  std::vector<InputFile> files_;
  ExitCode code_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> finished_{false};
  std::exception_ptr error_;
  std::string result_;
  std::thread thread_;
};

}  // namespace finetune
