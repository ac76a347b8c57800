// Communicator: collectives and messages between the processes of one run.
// `solo` is a single process; `shared` connects the processes of one host through shared memory;
// `mpi` connects several hosts by MPI, with shared memory inside each host.
//
// Ranks are ordered by host: the processes of a host are neighbours, and rank 0 is the launcher's
// rank 0. Error texts name a process by the launcher's number (name()).
//
// A function marked collective must be called by all processes (of the run, or of the host) in the
// same order. No call hangs: a waiting process checks whether the others live. If one died, or did
// not arrive within the time limit (--comm-timeout), the job ends with one line that names it. A
// wait spins for about a millisecond, then sleeps. Sums are not made here, because the caller fixes
// the order of additions (core/numeric/subtrees.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/link.h"

namespace finetune {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int host() const = 0;  // 0 .. hosts() - 1
  virtual int hosts() const = 0;
  virtual int local_rank() const = 0;  // rank among the processes of this host
  virtual int local_size() const = 0;
  virtual int first_rank(int host) const = 0;    // first_rank(hosts()) is size()
  virtual std::string name(int rank) const = 0;  // "rank 3 on node7"

  // How long a process waits for another before it ends the job. Default: 10 minutes.
  virtual void set_timeout(double seconds) = 0;
  // A patient process waits any time for running processes; it gives up only if a process of its
  // host is stopped for the timeout. Used while rank 0 works alone. Default: false.
  virtual void set_patient(bool patient) = 0;
  // Advice that ends the error line when a process is lost, such as "--resume continues from ...".
  // A string literal, or null (default) for none.
  virtual void set_remedy(const char* remedy) = 0;
  // States what this process does from now on, for error lines of other processes: "backward pass",
  // 17. `phase` is a string literal. step < 0: no step.
  virtual void note(const char* phase, int64_t step) = 0;
  // States that a library call begins that waits for other processes without checking on them. A
  // call longer than the timeout ends the job. `what` is a string literal; null: the call has
  // returned.
  virtual void waits_in(const char* what) = 0;

  // ---- of all processes, collective ---------------------------------------------------------
  virtual void barrier() = 0;
  // Afterwards all[r * bytes ...] holds `mine` of rank r, on every process.
  virtual void all_gather(const void* mine, size_t bytes, void* all) = 0;
  virtual void broadcast(void* data, size_t bytes, int root) = 0;
  // scatter: rank 0 sends parts[r] to rank r; others pass {}. gather: rank 0 gets every rank's
  // bytes; other ranks get an empty result. Sizes may differ and may be 0.
  virtual std::vector<uint8_t> scatter(std::span<const std::vector<uint8_t>> parts) = 0;
  virtual std::vector<std::vector<uint8_t>> gather(std::span<const uint8_t> mine) = 0;

  // ---- of the processes of this host, collective among them ------------------------------------
  virtual void host_barrier() = 0;
  // Allocates zeroed memory that all processes of the host share, 64-byte aligned, at addresses
  // that may differ; pages are created at their first write. All pass the same size. The memory is
  // freed when the last process releases it, even by kill -9. If a process cannot get it, that one
  // throws Error(device) and the others PeerFailed (agreement.h).
  virtual std::shared_ptr<void> allocate_shared(size_t bytes) = 0;

  // ---- between hosts ------------------------------------------------------------------------
  // Messages to and from processes of other hosts; collective among the processes that exchange.
  // All transfers are in flight together and complete on return. Messages between two processes
  // match in order. `message` names the awaited message in an error line.
  struct Outgoing {
    int rank;
    const void* data;
    size_t bytes;
  };
  struct Incoming {
    int rank;
    void* data;
    size_t bytes;
  };
  virtual void exchange(std::span<const Outgoing> out, std::span<const Incoming> in,
                        const LinkMessage& message) = 0;
  // The number of local ranks that every host has, and the process with this one's local rank on
  // another host.
  virtual int columns() const = 0;
  int column_peer(int of_host) const { return first_rank(of_host) + local_rank(); }

  // ---- groups and links, collective ----------------------------------------------------------
  // split(): the processes that pass the same color (>= 0) form a communicator, in order of their
  // ranks here. It numbers ranks and hosts anew and keeps the processes' names. The time limit,
  // note() and finish() apply to the whole run, whichever communicator is called. The group must
  // not outlive this communicator; destroying it is not collective. Agree on errors (agreement.h)
  // over the run's communicator: other groups would wait for the processes that left. A process is
  // in at most kMostGroups groups at once (host/control_block.h). Error(device) as in
  // allocate_shared().
  virtual std::unique_ptr<Communicator> split(int color) = 0;
  // Creates all links that `ends` lists and returns this process's ends in that order, null for
  // links of other processes. Links must not outlive this communicator. Error(device) as in
  // allocate_shared().
  virtual std::vector<std::unique_ptr<Link>> make_links(std::span<const LinkEnds> ends) = 0;
  // Makes progress on links' messages to other hosts. Waits do this themselves; call it now and
  // then in a long computation, else messages stay until this process waits.
  virtual void advance() = 0;

  // ---- statistics -------------------------------------------------------------------------------
  // Payload bytes that this process sent to others of this communicator by any means, counted once
  // per receiver:
  //   all_gather  bytes * (size() - 1)          scatter  rank 0: all parts but its own
  //   broadcast   root: bytes * (size() - 1)    gather   other ranks: their own bytes
  //   exchange    the outgoing messages
  //   links made here: their messages, and what count_sent() adds.
  // Barriers, shared memory, split() and make_links() count as nothing. Groups count separately.
  virtual int64_t bytes_sent() const = 0;
  // Adds bytes that others received in another way: through shared memory, or from device to
  // device.
  virtual void count_sent(int64_t bytes) = 0;

  // ---- the end ------------------------------------------------------------------------------
  // Returns true for the first process that asks (on its host; across hosts after a moment): that
  // process tells the user why the job ends.
  virtual bool claim_error_report() = 0;
  // Describes the stopped processes of this host, to end the error of a process that waited in
  // vain: "; stopped: rank 3 on node7 (pid 71, in backward pass, step 17)". "" if none is stopped.
  virtual std::string stopped() const = 0;
  // Ends all processes with this exit code, for errors that only this process knows of.
  [[noreturn]] virtual void abort(int code) = 0;
  // Collective: marks this process as done; from now on no process waits for it.
  virtual void finish() = 0;
};

// Makes the process patient (set_patient()) during its lifetime.
class Patience {
 public:
  explicit Patience(Communicator& comm) : comm_(comm) { comm_.set_patient(true); }
  ~Patience() { comm_.set_patient(false); }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  Communicator& comm_;
};

// Marks a library call (waits_in()) during its lifetime.
class LibraryCall {
 public:
  LibraryCall(Communicator& comm, const char* what) : comm_(comm) { comm_.waits_in(what); }
  ~LibraryCall() { comm_.waits_in(nullptr); }
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;

 private:
  Communicator& comm_;
};

// True if a launcher (mpirun, srun) started this process as one of several.
bool launched_in_parallel();
// The rank that the launcher's environment gives this process, if it does.
std::optional<int64_t> launched_rank();

// Creates the communicator of all launched processes, or solo. Call once per process. Error(device)
// if the processes cannot find each other.
std::unique_ptr<Communicator> make_communicator();
std::unique_ptr<Communicator> make_solo_communicator();

}  // namespace finetune
