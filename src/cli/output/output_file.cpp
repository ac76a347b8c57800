// Writes to a temporary name that is renamed, or straight to a pipe or standard output.
#include "cli/output/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "cli/standard_output.h"
#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/files/output_directory.h"
#include "core/text/text.h"
#include "data/input_file.h"
#include "train/record/training_rows.h"

namespace finetune {
namespace {

// A device or a pipe. It is written directly, since it cannot be renamed.
class Stream {
 public:
  explicit Stream(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail();
  }
  ~Stream() { ::close(descriptor_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void write(std::string_view text) {
    if (!write_all(descriptor_, text)) fail();
  }

 private:
  [[noreturn]] void fail() const { throw write_failure(path_, errno); }

  std::string path_;
  int descriptor_;
};

// A file, which is written atomically; standard output; or a device or pipe.
class OutputFile final : public PredictionOutput {
 public:
  OutputFile(const std::string& path, bool overwrite) {
    if (path == "-") return;
    if (is_pipe(path)) {
      stream_.emplace(path);
    } else {
      remove_abandoned_files(path);
      file_.emplace(path, overwrite ? AtomicFile::Existing::replace : AtomicFile::Existing::refuse);
    }
  }
  void write(std::string_view text) override {
    if (file_)
      file_->write(text);
    else if (stream_)
      stream_->write(text);
    else
      write_standard_output(text);
  }
  void flush() override {
    if (!file_ && !stream_) flush_standard_output();
  }
  void complete() override {
    if (file_) file_->complete();
  }
  void commit() override {
    if (file_)
      file_->commit();
    else if (!stream_)
      flush_standard_output();
  }

 private:
  std::optional<AtomicFile> file_;
  std::optional<Stream> stream_;
};

void require_unpacked_name(const std::string& path) {
  for (const char* packed : {".gz", ".zst", ".bz2", ".xz"}) {
    if (!ends_with_ignoring_case(path, packed)) continue;
    throw usage_error(path, ": outputs are not packed; name it without ", packed,
                      ", or send --output - through a packer");
  }
}

}  // namespace

bool is_same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty() || a == "-" || b == "-") return false;
  std::error_code error;
  if (a == b || fs::equivalent(a, b, error)) return true;
  const fs::path one = fs::weakly_canonical(fs::absolute(a, error), error);
  return !error && one == fs::weakly_canonical(fs::absolute(b, error), error) && !error;
}

std::string link_destination(const std::string& path) {
  std::error_code error;
  if (path.empty() || is_pipe(path) || !fs::is_symlink(fs::symlink_status(path, error))) {
    return path;
  }
  const fs::path found = fs::canonical(path, error);
  if (error) throw usage_error(path, ": is a symbolic link that leads nowhere; name a file");
  return found;
}

void check_output_file(const std::string& path, const std::vector<std::string>& inputs,
                       bool overwrite) {
  require_unpacked_name(path);
  if (path.empty() || is_pipe(path) || !path_exists(path, ExitCode::model)) return;
  if (directory_exists(path, ExitCode::model)) {
    throw usage_error(path, ": is a directory, a file is needed");
  }
  for (const std::string& input : inputs) {
    if (!is_same_file(path, input)) continue;
    throw usage_error(path, ": is the input; write the output to another file");
  }
  if (!overwrite) throw usage_error(path, ": exists; --overwrite replaces it");
}

void check_model_survives(const std::string& path, const fs::path& model,
                          const std::vector<std::string>& labelled) {
  std::error_code ignored;
  if (path.empty() || is_pipe(path) || !path_exists(path, ExitCode::model)) return;
  if (fs::equivalent(fs::absolute(path).parent_path(), model, ignored)) {
    throw usage_error(path, ": is one of the model's files; write the output elsewhere");
  }
  const auto require_other = [&](const std::string& file, const char* what) {
    if (!is_same_file(path, file)) return;
    throw usage_error(path, ": is a file that ", what, "; write the output elsewhere");
  };
  for (const std::string& file : labelled) require_other(file, "--train names");
  for (const fs::path& file : files_named_by_run(model)) {
    require_other(file.string(), "the run was trained on");
  }
}

void check_labelled_survive(const std::string& directory, const fs::path& model,
                            const std::vector<std::string>& labelled) {
  if (directory.empty()) return;
  std::vector<fs::path> files = files_named_by_run(model);
  for (const std::string& file : labelled) {
    if (!is_pipe(file)) files.emplace_back(file);
  }
  check_inputs_survive(directory, files);
}

std::unique_ptr<PredictionOutput> open_output_file(const std::string& path, bool overwrite) {
  return std::make_unique<OutputFile>(path, overwrite);
}

}  // namespace finetune
