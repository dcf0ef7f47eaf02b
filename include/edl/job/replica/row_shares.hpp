// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edl/base/net/channel.hpp"
#include "edl/compute/sparse/divided_rows.hpp"
#include "edl/compute/sparse/minibatch_rows.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/layout.hpp"
#include "edl/job/collective/group.hpp"
#include "edl/job/ps/store.hpp"
#include "edl/job/replica/row_placement.hpp"

namespace edl::replica {

/// A call to another member; several are made in parallel.
struct member_call {
  std::size_t member = 0;  ///< its rank
  net::outgoing request;
};

/// The rows of one member of a world, and its requests for others. While tables are small, every member has
/// all rows. Once they are not, the members share them (`row_placement`).
///
/// Errors are collective::broken. Thread safety: one thread at a time; not the node's, except `stepped`.
class row_shares {
 public:
  struct options {
    std::vector<table_shape> tables;
    int copies = 0;         ///< of each row, once the tables are not small; 0: one on every member
    std::size_t small = 0;  ///< bytes of all tables' rows up to which they are small
    std::shared_ptr<ps::store> store;
    std::function<void(std::function<void()> const& work)> on_node;  ///< runs work on the node's thread
    /// Makes these calls, retrying each until it gets a reply, and returns the replies.
    std::function<std::vector<std::string>(std::vector<member_call> const& calls)> call;
    std::function<std::string(std::size_t member)> name;
  };

  explicit row_shares(options o);

  /// Enters a world of this many members, with this rank. `wanted`: the requested number.
  void enter(int size, int rank, int wanted = 0);

  /// Call before the store loads a checkpoint or an exported model, or starts from the seed (an empty path).
  /// It must load all rows, or this member's share; `gather` assumes that.
  void prepare(std::string const& from);

  /// The store is a copy of the world's state without any rows.
  void forget() { has_.reset(); }

  /// Agrees with all members of the world on the placement of rows, and fetches those that the store lacks.
  /// It does not drop any yet. False: some rows are on no member. All members get the same result. Throws
  /// edl::error if a member has other options.
  bool gather(collective::group& with, std::uint64_t world);

  /// Drops surplus rows, when all members have gathered. If a world breaks earlier, no moved rows are lost,
  /// whichever members continue.
  void resolve(collective::group& with);

  /// Whether members have different rows.
  bool divided() const { return divided_; }

  /// Gets the weights of the rows from the members that have them, at this version.
  void pull(sparse::minibatch_rows& rows, std::uint64_t world, std::uint64_t version);

  /// Call after a step of the store, because its tables may no longer be small. On the node's thread.
  void stepped();

  /// Executes the decision of `stepped`, once all members have made that step. All decide the same, because
  /// it depends only on the number of rows. True: this member has dropped rows.
  bool divide();

 private:
  struct holding {
    slot_set slots;
    std::size_t mebibytes = 0;  // of rows, if they were all
  };

  element_range own() const {
    invariant(placement_.has_value(), "a member's share of the rows follows from its world");
    return placement_->slots_of(placement_->group_of(rank_));
  }
  void check() const;
  std::size_t row_bytes() const;
  std::vector<holding> exchange(collective::group& with) const;
  void give_up_all_but(element_range slots);
  void fetch(std::vector<holding> const& from, element_range slots, std::uint64_t world);

  options options_;
  std::optional<row_placement> placement_;  // of the world
  int size_ = 1, rank_ = 0;
  int wanted_ = 0;
  bool divided_ = false, due_ = false;
  slot_set has_;  // slots of which the store has all rows; it may hold others, whose rows are still arriving
  std::optional<sparse::divided_rows> rows_;  // by group
};

}  // namespace edl::replica

#ifdef EDL_HEADER_ONLY
#include "edl/job/replica/row_shares.ipp"
#endif
