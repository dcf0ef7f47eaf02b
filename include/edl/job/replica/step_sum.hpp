// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "edl/core/ledger.hpp"
#include "edl/core/span.hpp"
#include "edl/job/collective/group.hpp"
#include "edl/job/collective/topology.hpp"
#include "edl/job/replica/buckets.hpp"

namespace edl::replica {

/// The sum over a group's members in a step: gradients and changes of state, each minibatch's times its
/// records, and the minibatches' identities. A step has places for minibatches; each member has some of them.
///
/// Gradients are summed in buckets, the last of the arena first. A separate thread sums a bucket whose
/// gradients are final while earlier ones are still being computed. The buckets' borders depend only on the
/// number of parameters, so that all members use the same ones.
///
/// Errors are collective::broken; after one, only `enter` may be called. Thread safety: one thread.
class step_sum {
 public:
  struct options {
    std::size_t parameters = 0, state = 0;
    bool bfloat16 = false;  ///< gradients are sent as bfloat16
    /// Places of a step, which are added in their order, so that sums are bitwise equal for any number of
    /// members. With 0 there is one place for each member, in any fast order.
    std::size_t places = 0;
    /// Largest size of a bucket. With less, the first one is sent sooner and less remains when the last
    /// gradient is final. With more, the share of round trips is smaller. At 10 Gbit/s a bucket takes 7 ms,
    /// and its round trips less than one.
    std::size_t bucket_bytes = std::size_t(4) << 20;
  };

  explicit step_sum(options o);
  step_sum(step_sum const&) = delete;
  step_sum& operator=(step_sum const&) = delete;

  /// Aborts the group if a sum is in progress.
  ~step_sum();

  /// Enters this group (null: none). Drops all contributions; if the previous group had begun a sum, it must
  /// have been aborted.
  void enter(std::shared_ptr<collective::group> group);

  /// This member's places.
  collective::share own() const { return own_; }

  /// Number of minibatches contributed to the next step.
  std::size_t brought() const { return brought_; }

  /// The last minibatch of this member's contribution to the step is being computed, for the `place`-th of
  /// its places. Gradients from number `first` on are final. It is contributed next, with the same span.
  void ready(std::size_t place, contribution const& c, view<float> gradients, std::size_t first);

  /// Whether a sum has been begun by `ready`.
  bool begun() const { return ahead_.has_value(); }

  /// Contributes a minibatch. Returns its term, parameters and then state, which may be changed unless the
  /// sum has begun.
  std::span<float> bring(std::size_t place, contribution const& c, view<float> gradients,
                         view<float> state_change);

  /// Computes the sum, which is then in `sums`; returns all members' contributions, by place. `ends`: this
  /// member requests that the group ends with it.
  std::vector<contribution> sum(bool ends = false);

  /// Whether any member has requested that in the last sum; equal on all members.
  bool ends() const { return ends_; }

  /// Parameters, then state; valid until the next minibatch is contributed or computed.
  std::span<float> sums() { return term(0); }

 private:
  using range = buckets::range;
  struct early {
    std::size_t place;
    float weight;
    view<float> gradients;
  };

  std::size_t elements() const { return options_.parameters + options_.state; }
  std::span<float> term(std::size_t place);
  void start_anew();
  void fill_gaps();
  void reduce(collective::group& group, range r, bool bfloat16);
  void reduce_bucket(collective::group& group, std::size_t index);
  void await_buckets();
  void run();

  options options_;
  buckets buckets_;
  std::size_t places_ = 0;
  collective::share own_;
  std::vector<float> values_;             // of the first own place, or the sums; then identities
  std::vector<std::vector<float>> more_;  // of the other own places
  std::vector<std::optional<contribution>> mine_;
  std::vector<view<float>> views_;  // of own places, within a bucket
  std::size_t brought_ = 0;
  std::optional<early> ahead_;
  std::size_t announced_ = 0;  // the last bucket that was reported ready
  bool ends_ = false;

  std::mutex lock_;
  std::condition_variable changed_;
  std::shared_ptr<collective::group> group_;
  std::size_t ready_ = 0, summed_ = 0;  // buckets from these on are ready, or summed
  bool busy_ = false, stopped_ = false;
  std::exception_ptr failed_;
  std::thread thread_;
};

}  // namespace edl::replica

#ifdef EDL_HEADER_ONLY
#include "edl/job/replica/step_sum.ipp"
#endif
