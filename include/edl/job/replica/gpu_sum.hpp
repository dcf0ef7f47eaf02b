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
/// NCCL sums them, bucket by bucket, while the backward pass goes on. The group itself carries the
/// minibatches' identities, and is what tells that a member is lost: then the sum is given up, at once.
///
/// Errors are collective::broken; after one, `enter` is the only way on. Thread safety: one thread; who
/// aborts the group from another ends what waits here.
class gpu_sum {
 public:
  struct options {
    std::size_t parameters = 0;
    std::string unwanted{};                           ///< why no member tries at all; empty: all do
    std::size_t bucket_bytes = std::size_t(8) << 20;  ///< of a bucket, at most: a graph's cut costs some µs
    std::chrono::milliseconds join_in{60'000};        ///< NCCL is given up after this
    std::chrono::milliseconds sum_in{300'000};        ///< a member is taken for lost
    /// An error of NCCL's is put down to a member's loss if that is noticed within this.
    std::chrono::milliseconds blame_in{5'000};
  };

  /// `there`: where gradients are computed; null: on no GPU.
  gpu_sum(arena* there, options o);
  ~gpu_sum();

  /// Why GPUs are not joined, and the rank of a member that it is for (−1: of others).
  struct refusal {
    int rank = 0;
    std::string why;
    bool with_gpu = false;  ///< a member has one
  };

  /// From now on in this group, if its GPUs can be joined. All its members call this together, and either all
  /// are joined or none is. `unable`: why this member's GPU cannot be; empty: it can.
  std::optional<refusal> enter(std::shared_ptr<collective::group> group, std::string const& unable = {});

  /// In no group any more. What was brought is dropped.
  void leave();

  bool joined() const { return joined_; }
  std::string describe() const;  ///< "NCCL 2.28.3"

  /// As `step_sum` does, of the one minibatch that a member has in a step. What breaks here is thrown by
  /// `sum`.
  void ready(contribution const& c, std::size_t first);
  bool begun() const { return next_ < buckets_.count(); }
  std::size_t brought() const { return mine_ ? 1 : 0; }

  /// `counts`: no member has counted it before; otherwise what it would add is left out.
  void bring(contribution const& c, bool counts);

  /// Makes the sum, of which `arena::average` makes a step's gradients; tells what all members brought.
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
  std::string failed_;  // an error of NCCL's that was nobody's loss: it is not tried again
  std::shared_ptr<collective::group> group_;
  std::unique_ptr<communicator> link_;  // null: it has ended
  bool joined_ = false;
  std::optional<collective::broken> broken_;
  int version_ = 0;
  std::size_t next_ = 0;  // buckets from this one on are on their way
  float weight_ = 0;      // of what is on its way
  std::optional<contribution> mine_;
  std::vector<float> identities_;
};

}  // namespace edl::replica

#ifdef EDL_HEADER_ONLY
#include "edl/job/replica/gpu_sum.ipp"
#endif
