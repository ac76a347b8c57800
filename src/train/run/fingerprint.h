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

// One file: the sum that sha256sum prints. Several: the SHA-256 of their sums in order, one per
// line (as `sha256sum FILES | cut -c1-64 | sha256sum` prints). No file: an empty text.
class Fingerprint {
 public:
  // Starts the thread. `code`: the exit code of errors, for data or for the model.
  explicit Fingerprint(std::vector<InputFile> files, ExitCode code = ExitCode::data);
  ~Fingerprint();  // stops the thread early if it still works
  Fingerprint(const Fingerprint&) = delete;
  Fingerprint& operator=(const Fingerprint&) = delete;

  bool finished() const { return finished_; }
  // Waits for the result. Error(code) naming a file that cannot be read, or not a second time.
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
