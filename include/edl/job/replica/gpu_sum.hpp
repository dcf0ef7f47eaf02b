// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/device/accelerator.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/core/ledger.hpp"
#include "edl/job/collective/broken.hpp"
#include "edl/job/collective/group.hpp"
#include "edl/job/replica/buckets.hpp"

namespace edl::replica {

/// `step_sum` between the GPUs of a group's members. Gradients and changes of state stay in their memory.
/// NCCL sums them, bucket by bucket, while the backward pass continues. The group itself exchanges the
/// minibatches' identities, and detects the loss of a member: then the sum is aborted at once.
///
/// Errors are collective::broken; after one, only `enter` may be called. Thread safety: one thread; aborting
/// the group from another thread ends waits here.
class gpu_sum {
 public:
  struct options {
    std::size_t parameters = 0;
    std::string unwanted{};                           ///< why no member tries; empty: all do
    std::size_t bucket_bytes = std::size_t(8) << 20;  ///< at most; each cut of a graph costs some µs
    std::chrono::milliseconds join_in{60'000};        ///< NCCL is given up after this
    std::chrono::milliseconds sum_in{300'000};        ///< after which a member is considered lost
    /// An NCCL error is attributed to the loss of a member if that is detected within this time.
    std::chrono::milliseconds blame_in{5'000};
  };

  /// `there`: the arena of the gradients; null: no GPU.
  gpu_sum(arena* there, options o);
  ~gpu_sum();

  /// Why GPUs are not joined, and the rank of the responsible member (−1: others).
  struct refusal {
    int rank = 0;
    std::string why;
    bool with_gpu = false;  ///< a member has one
  };

  /// Enters this group, if its GPUs can be joined. All members call this together, and either all are joined
  /// or none. `unable`: why this member's GPU cannot join; empty: it can.
  std::optional<refusal> enter(std::shared_ptr<collective::group> group, std::string const& unable = {});

  /// Leaves the group, and drops contributions.
  void leave();

  bool joined() const { return joined_; }
  std::string describe() const;  ///< "NCCL 2.28.3"

  /// As in `step_sum`, for the single minibatch of a member in a step. Errors here are thrown by `sum`.
  void ready(contribution const& c, std::size_t first);
  bool begun() const { return next_ < buckets_.count(); }
  std::size_t brought() const { return mine_ ? 1 : 0; }

  /// `counts`: no member has counted it before; otherwise its contribution is left out.
  void bring(contribution const& c, bool counts);

  /// Computes the sum, from which `arena::average` makes a step's gradients; returns all members'
  /// contributions.
  std::vector<contribution> sum();

 private:
  enum class refused : std::uint32_t;
  struct member;

  void check() const;
  std::vector<member> introduce(refused why);
  gpu_meeting meet();
  void join();
  void try_out();
  bool everybody(bool well);
  void add(std::size_t down_to, float weight, int mark);
  template <class Done>
  void wait(Done done, std::chrono::milliseconds most);
  template <class Work>
  void blaming(Work work);
  [[noreturn]] void end(collective::broken const& why);

  arena* there_;
  options options_;
  buckets buckets_;
  arena::summands summands_;
  std::string failed_;  // an NCCL error that no lost member explains: not retried
  std::shared_ptr<collective::group> group_;
  std::unique_ptr<communicator> link_;  // null: closed
  bool joined_ = false;
  std::optional<collective::broken> broken_;
  int version_ = 0;
  std::size_t next_ = 0;  // buckets from this one on are in flight
  float weight_ = 0;      // of the minibatch in flight
  std::optional<contribution> mine_;
  std::vector<float> identities_;
};

}  // namespace edl::replica

#ifdef EDL_HEADER_ONLY
#include "edl/job/replica/gpu_sum.ipp"
#endif
