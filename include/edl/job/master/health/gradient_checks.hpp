// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edl/core/ledger.hpp"
#include "edl/job/master/membership.hpp"
#include "edl/job/master/task_plan.hpp"

namespace edl::master {

/// Decides which minibatches are recomputed by which worker, and whose result is wrong. A worker reports
/// digests of some of its minibatches (`trained`). Another one with the same kind of processor recomputes
/// each (`lease`). If the two differ, a third worker decides; with only two of the kind, both recompute, and
/// one that does not reproduce its own result is wrong. Copies of the model that should be equal are
/// compared, too.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class gradient_checks {
 public:
  /// Lease ids have this bit set, and not the highest.
  static constexpr std::uint64_t lease_bit = std::uint64_t{1} << 62;

  /// The minibatch that a worker must recompute.
  struct order {
    std::uint64_t lease = 0;
    task_key task;
    task_range range;
    std::uint32_t minibatch = 0;
    std::uint32_t of = 0;  ///< the worker that has trained it
  };

  struct verdict {
    std::string text;                      ///< the finding, for the log
    std::vector<std::uint32_t> culprits;   ///< empty: it is unknown which
    std::optional<std::uint64_t> good_at;  ///< the job rolls back to a checkpoint up to this version
  };

  /// `copies`: each worker has a copy of the model, which is the same at each version.
  explicit gradient_checks(bool copies) : copies_(copies) {}

  /// The versions up to which workers, and all copies of the model, are known to be right, to choose a
  /// checkpoint for a rollback. The state for a successor of the master.
  struct known {
    std::map<std::uint32_t, std::uint64_t> workers;
    std::uint64_t copies = 0;
    friend bool operator==(known const&, known const&) = default;
  };
  known const& known_good() const { return known_; }
  std::uint64_t changes() const { return changes_; }  ///< another number whenever `known_good` is another

  /// Continues the previous master's checks; call before any worker joins.
  void resume(known before);

  /// A new worker: its results from this version on are unverified. `before`: it has worked for the previous
  /// master, and those results are unverified, too.
  void joined(std::uint32_t worker, std::uint64_t version, bool before = false);

  /// There is a checkpoint of this version.
  void written(std::uint64_t version);

  /// A worker reports minibatches of a task that it has trained.
  void trained(std::uint32_t worker, task_key const& task, task_range const& range,
               std::vector<checked_minibatch> const& what, membership const& workers);

  /// The check for this worker, if any.
  std::optional<order> lease(std::uint32_t worker, membership const& workers);
  bool holds(std::uint64_t lease, std::uint32_t worker) const;

  /// The check is done, or could not be (empty). False: it is no longer needed.
  bool answered(std::uint64_t lease, std::uint32_t worker, std::optional<checked_minibatch> const& result);

  void gone(std::uint32_t worker);

  /// Voids all checks in progress.
  void clear();
  /// The model has another history from this version on.
  void go_back_to(std::uint64_t version);

  std::optional<verdict> take_verdict() { return std::exchange(found_, std::nullopt); }
  std::uint64_t done() const { return done_; }  ///< number of recomputed minibatches, by all workers

 private:
  struct answer {
    std::uint32_t worker = 0;
    std::uint64_t weights = 0, gradient = 0;
    bool same(answer const& o) const { return weights == o.weights && gradient == o.gradient; }
  };
  struct check {
    order what;
    std::uint64_t version = 0;
    std::vector<answer> answers;           // the first is that of the worker that trained it
    std::optional<std::uint32_t> asked{};  // the worker that recomputes it now
  };

  bool may_answer(check const& c, std::uint32_t worker, membership const& workers) const;
  void decide(check& c);
  void found(check const& c, std::vector<std::uint32_t> culprits, std::string const& how);
  void compare_copies(std::uint32_t worker, checked_minibatch const& what, membership const& workers);
  void note();

  bool copies_;
  std::map<std::uint32_t, check> checks_;                                    // by the worker that trained it
  std::map<std::uint64_t, std::map<std::uint32_t, std::uint64_t>> weights_;  // by version and worker
  std::map<std::uint32_t, std::uint64_t> good_;  // versions up to which workers are known to be right
  std::uint64_t copies_good_ = 0;                // the version at which all copies were equal
  std::uint64_t next_lease_ = lease_bit, done_ = 0;
  std::optional<verdict> found_;
  known before_, known_;
  std::uint64_t checkpoint_ = 0;  // the newest
  std::uint64_t changes_ = 0;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/health/gradient_checks.ipp"
#endif
