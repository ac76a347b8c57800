// Communicator: collectives and messages between the processes of one run.
// `solo` is one process; `shared` the processes of one host, through memory that they share; `mpi`
// several hosts, MPI between them and shared memory inside each.
//
// Processes are numbered in order of hosts: those of a host are neighbours, and rank 0 is the
// launcher's rank 0. Messages name a process by the launcher's own number (name()).
//
// Every function that is said to be collective must be called by all processes (of the run, or of
// the host) in the same order. None hangs: while it waits it looks whether the others live, and
// ends the whole job with one line that names the process which died, or which did not come within
// the time limit (--comm-timeout). Waiting looks for about a millisecond, then sleeps. Results of
// sums do not come from here: the order of additions is the caller's business
// (core/numeric/subtrees.h).
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
  virtual int host() const = 0;  // 0 .. hosts()-1
  virtual int hosts() const = 0;
  virtual int local_rank() const = 0;  // among the processes of this host
  virtual int local_size() const = 0;
  virtual int first_rank(int host) const = 0;    // its processes follow; of hosts(): size()
  virtual std::string name(int rank) const = 0;  // "rank 3 on node7"

  // How long a process waits for another before it gives up; 10 minutes unless set.
  virtual void set_timeout(double seconds) = 0;
  // Whether this process waits for others that run, however long it takes, and gives up only if one
  // of its host is stopped for that time. For work that rank 0 does alone; not so unless set.
  virtual void set_patient(bool patient) = 0;
  // What the user may do where a process is lost, for the end of the line that says so: "--resume
  // continues from ...". A literal; null, as at the start: nothing.
  virtual void set_remedy(const char* remedy) = 0;
  // What this process does from now on, for the message of a survivor: "backward pass", 17. `phase`
  // is a literal. step < 0: none.
  virtual void note(const char* phase, int64_t step) = 0;
  // A library's call from now on, which waits for other processes and does not look itself: one
  // that takes longer than set_timeout() ends the job. `what` is a literal; null: it has returned.
  virtual void waits_in(const char* what) = 0;

  // ---- of all processes, collective ---------------------------------------------------------
  virtual void barrier() = 0;
  // mine of rank r is all[r * bytes ...] afterwards, on every process.
  virtual void all_gather(const void* mine, size_t bytes, void* all) = 0;
  virtual void broadcast(void* data, size_t bytes, int root) = 0;
  // Rank 0 hands out parts[r] to rank r (others pass {}), and collects what each has; for others
  // than rank 0 gather's result is empty. Sizes may differ and may be 0.
  virtual std::vector<uint8_t> scatter(std::span<const std::vector<uint8_t>> parts) = 0;
  virtual std::vector<std::vector<uint8_t>> gather(std::span<const uint8_t> mine) = 0;

  // ---- of the processes of this host, collective among them ------------------------------------
  virtual void host_barrier() = 0;
  // Zeroed memory that all of them see, at whatever address; 64-byte aligned, pages come when they
  // are first written. All pass the same size. It goes when the last process has let go of it, also
  // after kill -9. Where one of them cannot have it, that one throws Error(device), the others
  // PeerFailed (agreement.h).
  virtual std::shared_ptr<void> allocate_shared(size_t bytes) = 0;

  // ---- between hosts ------------------------------------------------------------------------
  // To and from processes of other hosts. Collective among those that exchange with each other; all
  // transfers are in flight together, and have ended on return. Between two processes they match in
  // order. `message`: what is awaited, for the line that ends a job in which it does not come.
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
  // Local ranks that every host has, and the process with this one's on another host.
  virtual int columns() const = 0;
  int column_peer(int of_host) const { return first_rank(of_host) + local_rank(); }

  // ---- groups and links, collective ----------------------------------------------------------
  // The processes that pass the same color (>= 0), in order of their ranks here, as a communicator:
  // it numbers ranks and hosts anew and keeps the run's names. What concerns life and death (the
  // time limit, note(), the end) is the run's, through whichever it is called: so is finish(). It
  // must not outlive this one; nobody need be told when it goes. Errors that end a command are the
  // run's to agree on (agreement.h): processes of other groups would wait for those that left. A
  // process is in at most kMostGroups at once (host/control_block.h). Error(device) as
  // allocate_shared().
  virtual std::unique_ptr<Communicator> split(int color) = 0;
  // This process's ends of the links that all ask for, in that order; null where it has none. They
  // must not outlive this communicator. Error(device) as allocate_shared().
  virtual std::vector<std::unique_ptr<Link>> make_links(std::span<const LinkEnds> ends) = 0;
  // Moves on what links have sent to other hosts; waiting does so by itself. Worth a call now and
  // then in a long computation: without one the message waits until this process waits.
  virtual void advance() = 0;

  // ---- how much it sends ---------------------------------------------------------------------
  // Bytes of the callers' data that this process has handed to others of this communicator,
  // whatever carried them, each as often as there are processes that got it:
  //   all_gather  bytes * (size() - 1)          scatter  rank 0: all parts but its own
  //   broadcast   root: bytes * (size() - 1)    gather   others than rank 0: their own bytes
  //   exchange    what is outgoing              links made here: their messages
  // and what count_sent() adds. Barriers, memory, split() and make_links() are nothing. Groups
  // count for themselves.
  virtual int64_t bytes_sent() const = 0;
  // Of data that others have got otherwise: through shared memory, or from device to device.
  virtual void count_sent(int64_t bytes) = 0;

  // ---- the end ------------------------------------------------------------------------------
  // True for the first process that asks (of its host, after a moment for other hosts): the one
  // that tells the user why the job ends.
  virtual bool claim_error_report() = 0;
  // The processes of this host that are stopped, for the end of an error of who waited for them in
  // vain: "; stopped: rank 3 on node7 (pid 71, in backward pass, step 17)". Empty: none.
  virtual std::string stopped() const = 0;
  // Ends all processes with this exit code. For faults that only this one knows of.
  [[noreturn]] virtual void abort(int code) = 0;
  // This process has come to its regular end: from now on nobody expects anything of it.
  // Collective.
  virtual void finish() = 0;
};

// set_patient() while it lives.
class Patience {
 public:
  explicit Patience(Communicator& comm) : comm_(comm) { comm_.set_patient(true); }
  ~Patience() { comm_.set_patient(false); }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  Communicator& comm_;
};

// waits_in() while it lives.
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
// The rank that the launcher says this process will have, where it does.
std::optional<int64_t> launched_rank();

// Of what the launcher started, or solo. Once in a process. Error(device) if the processes cannot
// find each other.
std::unique_ptr<Communicator> make_communicator();
std::unique_ptr<Communicator> make_solo_communicator();

}  // namespace finetune
