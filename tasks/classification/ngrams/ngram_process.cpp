// Passes rows to the child by file descriptor, and gets predictions in the same way.
#include "tasks/classification/ngrams/ngram_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <span>
#include <string_view>

#include "core/error.h"
#include "core/failure.h"
#include "core/files/descriptor.h"
#include "core/files/files.h"
#include "core/process_stats.h"
#include "core/threads/parallel.h"
#include "tasks/classification/ngram_mix/ngram_file.h"
#include "tasks/classification/ngrams/training.h"

namespace finetune {
namespace {

constexpr const char* kWord = "ngram-baseline-process";  // instead of a command
constexpr const char *kWithModel = "with-model", *kWithoutModel = "without-model";
constexpr std::string_view kFolds = "folds:";
constexpr int kTrainRows = 3, kEvalRows = 4, kPredictedRows = 5, kModel = 6;  // in the child
constexpr int kFirstFree = 10;                                                // the first free
constexpr int kMostWorkers = 16;
constexpr int kIgnored[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP};

bool can_begin = false;

// If memory runs out, the kernel kills this process and not the training that waits for it.
void volunteer_to_be_killed() {
  const Descriptor file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (file.number() >= 0) write_all(file.number(), "500");
}

void write_predictions(NgramModel& model, ProblemType problem) {
  TextRowReader reader(kEvalRows);
  TextRows out(kPredictedRows);
  for (TextRow row; reader.next(row);) {
    const std::span<const double> scores = model.score(row.text);
    if (problem == ProblemType::regression)
      out.add("", {}, scores[0]);
    else
      out.add("", labels_of_scores(scores, problem));
  }
  out.flush();
}

void write_model(const NgramModel& model) {
  if (!write_all(kModel, ngram_file_of(model))) {
    throw device_error("its model: ", std::strerror(errno));
  }
}

// Writes the peak memory of this process and its workers, in MiB, after the predictions. The parent
// cannot ask for it: a child's peak includes its parent's memory at the start.
void tell_memory(int descriptor) {
  rusage workers{};
  ::getrusage(RUSAGE_CHILDREN, &workers);
  const double mb = std::max(peak_memory_mb(), double(workers.ru_maxrss) / 1024);
  if (!write_all(descriptor, {reinterpret_cast<const char*>(&mb), sizeof mb})) {
    throw device_error("its memory: ", std::strerror(errno));
  }
}

double memory_told(int descriptor) {
  double mb = 0;
  struct stat info {};
  if (::fstat(descriptor, &info) != 0 || info.st_size < off_t(sizeof mb) ||
      ::pread(descriptor, &mb, sizeof mb, info.st_size - off_t(sizeof mb)) != ssize_t(sizeof mb)) {
    throw device_error("its predictions are not whole");
  }
  return mb;
}

constexpr std::string_view kFailure = "failure: ";

// Writes the message over the predictions. If this fails, the parent has only the exit code.
void tell_failure(int descriptor, std::string_view message) {
  if (::ftruncate(descriptor, 0) != 0 || ::lseek(descriptor, 0, SEEK_SET) != 0) return;
  write_all(descriptor, concat(kFailure, message));
}

std::string told_failure(int descriptor) {
  std::string text(1000, '\0');
  const ssize_t count = ::pread(descriptor, text.data(), text.size(), 0);
  text.resize(size_t(std::max<ssize_t>(count, 0)));
  return text.starts_with(kFailure) ? text.substr(kFailure.size()) : "";
}

// A child process; the destructor kills it.
class Child {
 public:
  Child(const std::vector<std::string>& words, std::span<const int> descriptors) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    // The given descriptors are above kModel, so that no dup2 overwrites one of them.
    for (size_t i = 0; i < descriptors.size(); ++i) {
      ::posix_spawn_file_actions_adddup2(&files, descriptors[i], kTrainRows + int(i));
    }
    ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    sigset_t held;  // from its first instruction on; later it ignores them
    ::sigemptyset(&held);
    for (const int number : kIgnored) ::sigaddset(&held, number);
    ::posix_spawnattr_setsigmask(&attributes, &held);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const int error =
        ::posix_spawn(&pid_, "/proc/self/exe", &files, &attributes, arguments.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    if (error != 0) throw device_error("its process cannot begin: ", start_failure(error));
  }
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // `messages`: the file to which the child writes why it failed.
  void wait(int messages) {
    int status = 0;
    while (::waitpid(pid_, &status, 0) != pid_) {
      if (errno != EINTR) throw device_error("its process: ", std::strerror(errno));
    }
    pid_ = -1;
    if (WIFSIGNALED(status)) {
      throw device_error("its process was ended by signal ", WTERMSIG(status),
                         WTERMSIG(status) == SIGKILL ? "; memory may be too small" : "");
    }
    if (WEXITSTATUS(status) == 0) return;
    const std::string message = told_failure(messages);
    if (!message.empty()) throw device_error("its process failed: ", message);
    throw device_error("its process failed with status ", WEXITSTATUS(status));
  }

 private:
  pid_t pid_ = -1;
};

// The child's task, given on its command line.
struct Work {
  ProblemType problem;
  int64_t outputs;
  ColumnCounts columns;
  std::string what;
};

Descriptor above_children(int descriptor) {
  Descriptor copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstFree));
  if (copy.number() < 0) {
    const int error = errno == EINVAL ? EMFILE : errno;  // EINVAL: the limit is below kFirstFree
    throw device_error("its process cannot begin: ", start_failure(error));
  }
  return copy;
}

// In the child `descriptors` become kTrainRows and following; -1 as the last is left out. Waits for
// the child.
void run_child(const Work& work, std::initializer_list<int> descriptors) {
  std::vector<Descriptor> copies;
  std::vector<int> numbers;
  for (const int descriptor : descriptors) {
    if (descriptor < 0) continue;
    copies.push_back(above_children(descriptor));
    numbers.push_back(copies.back().number());
  }
  const int workers = std::min(available_cores(), kMostWorkers);
  Child child({"finetune", kWord, concat(int(work.problem)), concat(work.outputs), concat(workers),
               concat(work.columns.numbers), concat(work.columns.categories), work.what,
               concat(::getpid())},
              numbers);
  child.wait(numbers[size_t(kPredictedRows - kTrainRows)]);
}

void write_fold_scores(const NgramTraining& training, int folds) {
  const std::vector<float> scores = out_of_fold_scores(kTrainRows, training, folds);
  const std::string_view bytes(reinterpret_cast<const char*>(scores.data()),
                               scores.size() * sizeof(float));
  if (!write_all(kPredictedRows, bytes)) {
    throw device_error("its scores: ", std::strerror(errno));
  }
}

}  // namespace

double predict_with_ngrams(const NgramJob& job) {
  run_child({job.problem, job.outputs, job.train.columns, job.model ? kWithModel : kWithoutModel},
            {job.train.descriptor(), job.eval.descriptor(), job.predictions.descriptor(),
             job.model ? job.model->number() : -1});
  return memory_told(job.predictions.descriptor());
}

std::vector<float> scores_out_of_fold(const FoldJob& job) {
  const TextRows out;
  run_child({ProblemType::single_label, job.outputs, job.rows.columns, concat(kFolds, job.folds)},
            {job.rows.descriptor(), job.rows.descriptor(), out.descriptor()});
  std::vector<float> scores(size_t(job.rows.size() * job.outputs));
  auto* bytes = reinterpret_cast<char*>(scores.data());
  for (size_t at = 0, size = scores.size() * sizeof(float); at < size;) {
    const ssize_t count = ::pread(out.descriptor(), bytes + at, size - at, off_t(at));
    if (count <= 0) throw device_error("its scores are not whole");
    at += size_t(count);
  }
  return scores;
}

bool has_ngram_process() {
  return can_begin;
}

int serve_ngram_process(int argc, char** argv) {
  can_begin = true;
  if (argc != 9 || std::string_view(argv[1]) != kWord) return -1;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (parse_int(argv[8]) != ::getppid()) return int(ExitCode::internal);  // it died before prctl
  for (const int number : kIgnored) ::signal(number, SIG_IGN);
  volunteer_to_be_killed();
  const Descriptor messages = above_children(kPredictedRows);  // TextRows closes the original
  try {
    NgramTraining training;
    training.problem = ProblemType(parse_int(argv[2]).value());
    training.outputs = parse_int(argv[3]).value();
    training.workers = int(parse_int(argv[4]).value());
    training.columns = {size_t(parse_int(argv[5]).value()), size_t(parse_int(argv[6]).value())};
    const std::string_view what = argv[7];
    if (what.starts_with(kFolds)) {
      write_fold_scores(training, int(parse_int(what.substr(kFolds.size())).value()));
      return 0;
    }
    NgramModel model = train_ngram_model(kTrainRows, training);
    const Descriptor behind_predictions = above_children(kPredictedRows);  // TextRows closes it
    write_predictions(model, training.problem);
    if (what == kWithModel) write_model(model);
    tell_memory(behind_predictions.number());
    return 0;
  } catch (const std::exception& failure) {
    const Error error = error_of(failure);
    tell_failure(messages.number(), error.what());
    return int(error.code());
  }
}

}  // namespace finetune
