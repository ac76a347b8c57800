// The communicator of a single process: every collective returns at once.
#include <cstdlib>
#include <cstring>
#include <optional>

#include "comm/communicator.h"
#include "comm/host/shared_memory.h"
#include "core/error.h"
#include "core/text/text.h"

namespace finetune {
namespace {

class Solo final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int host() const override { return 0; }
  int hosts() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  int first_rank(int host) const override { return host; }
  std::string name(int) const override { return "this process"; }
  void set_timeout(double) override {}
  void set_patient(bool) override {}
  void set_remedy(const char*) override {}
  void note(const char*, int64_t) override {}
  void waits_in(const char*) override {}

  void barrier() override {}
  void all_gather(const void* mine, size_t bytes, void* all) override {
    if (all != mine && bytes > 0) std::memcpy(all, mine, bytes);
  }
  void broadcast(void*, size_t, int) override {}
  std::vector<uint8_t> scatter(std::span<const std::vector<uint8_t>> parts) override {
    FINETUNE_CHECK(parts.size() == 1);
    return parts[0];
  }
  std::vector<std::vector<uint8_t>> gather(std::span<const uint8_t> mine) override {
    return {{mine.begin(), mine.end()}};
  }

  void host_barrier() override {}
  std::shared_ptr<void> allocate_shared(size_t bytes) override { return map_private_memory(bytes); }

  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in,
                const LinkMessage&) override {
    FINETUNE_CHECK(out.empty() && in.empty());
  }
  int columns() const override { return 1; }

  std::unique_ptr<Communicator> split(int color) override {
    FINETUNE_CHECK(color >= 0);
    return std::make_unique<Solo>();
  }
  std::vector<std::unique_ptr<Link>> make_links(std::span<const LinkEnds> ends) override {
    FINETUNE_CHECK(ends.empty());
    return {};
  }
  void advance() override {}
  int64_t bytes_sent() const override { return sent_; }
  void count_sent(int64_t bytes) override { sent_ += bytes; }

  bool claim_error_report() override { return true; }
  std::string stopped() const override { return {}; }
  void abort(int code) override { std::_Exit(code); }
  void finish() override {}

 private:
  int64_t sent_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_solo_communicator() {
  return std::make_unique<Solo>();
}

namespace {

std::optional<int64_t> number_of_variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? parse_int(text) : std::nullopt;
}

}  // namespace

bool launched_in_parallel() {
  if (auto size = number_of_variable("OMPI_COMM_WORLD_SIZE")) return *size > 1;
  if (auto size = number_of_variable("PMI_SIZE")) return *size > 1;
  // Slurm's variables alone prove nothing: the shell of a batch script has them too.
  if (!std::getenv("PMIX_RANK") && !std::getenv("PMI_RANK")) return false;
  if (auto size = number_of_variable("SLURM_STEP_NUM_TASKS")) return *size > 1;
  if (auto size = number_of_variable("SLURM_NTASKS")) return *size > 1;
  return true;
}

std::optional<int64_t> launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const auto rank = number_of_variable(name)) return rank;
  }
  return std::nullopt;
}

}  // namespace finetune
