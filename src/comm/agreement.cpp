// Decides which process reports when an action failed on some of them.
#include "comm/agreement.h"

#include <optional>
#include <vector>

#include "core/failure.h"

namespace finetune {
namespace {

enum class Kind : int32_t { good, error, other, settled };

struct Outcome {
  Kind kind = Kind::good;
  int32_t code = 0;
  uint64_t text = 0;  // hash of the message
};

// FNV-1a gives the same value in every process; std::hash does not promise that.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  return hash;
}

// Returns the failure as an Error, or nothing if the exception is not an error (e.g. the reader of
// a pipe closed it).
std::optional<Error> error_in(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error_of(error);
  } catch (...) {
    return std::nullopt;
  }
}

// If an agreement inside the action has already chosen the process that reports: its exit code.
std::optional<ExitCode> settled_code(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const PeerFailed& peer) {
    return peer.code;
  } catch (...) {
    return std::nullopt;
  }
}

}  // namespace

void detail::agree(Communicator& communicator, const std::exception_ptr& failure) {
  Outcome mine;
  std::optional<Error> error;
  if (failure) {
    error = error_in(failure);
    const std::optional<ExitCode> settled = settled_code(failure);
    mine.kind = settled ? Kind::settled : error ? Kind::error : Kind::other;
    mine.code = int32_t(settled ? *settled : error ? error->code() : ExitCode::internal);
    if (error) mine.text = hash_of(error->what());
  }
  const auto size = size_t(communicator.size());
  std::vector<Outcome> all(size);
  communicator.all_gather(&mine, sizeof mine, all.data());
  size_t reporter = size;
  bool same = true, settled = false;
  for (size_t i = size; i-- > 0;) {
    const Outcome& each = all[i];
    same = same && each.kind == Kind::error && each.code == all[0].code && each.text == all[0].text;
    settled = settled || each.kind == Kind::settled;
    if (each.kind == Kind::error || each.kind == Kind::other) reporter = i;
  }
  if (settled && failure) std::rethrow_exception(failure);
  if (reporter == size) {
    if (settled) throw PeerFailed{ExitCode::internal};
    return;
  }
  if (reporter != size_t(communicator.rank())) throw PeerFailed{ExitCode(all[reporter].code)};
  if (!error) std::rethrow_exception(failure);
  throw AgreedError(error->code(),
                    same ? std::string(error->what())
                         : concat(communicator.name(int(reporter)), ": ", error->what()));
}

}  // namespace finetune
