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

/// Calls to other members that are made side by side.
struct member_call {
  std::size_t member = 0;  ///< its rank
  net::outgoing request;
};

/// The rows that one member of a world has, and those that it asks others for. While tables are small, every
/// member has all rows. Once they are not, the members share them (`row_placement`).
///
/// Errors are collective::broken. Thread safety: one thread at a time; not the node's, but for `stepped`.
class row_shares {
 public:
  struct options {
    std::vector<table_shape> tables;
    int copies = 0;         ///< of each row, once the tables are not small; 0: one with every member
    std::size_t small = 0;  ///< bytes of rows, of all tables, up to which they are
    std::shared_ptr<ps::store> store;
    std::function<void(std::function<void()> const& work)> on_node;  ///< works on the node's thread
    /// Makes these calls, each until it is answered, and returns the answers.
    std::function<std::vector<std::string>(std::vector<member_call> const& calls)> call;
    std::function<std::string(std::size_t member)> name;
  };

  explicit row_shares(options o);

  /// From now on in a world of that many members, of which this is one. So many are `wanted`.
  void enter(int size, int rank, int wanted = 0);

  /// Before the store begins from a checkpoint or an exported model, or from the seed (an empty path). It is
  /// to hold all rows, or this member's share; `gather` takes it that it does.
  void prepare(std::string const& from);

  /// The store is a copy of the world's state without any rows.
  void forget() { has_.reset(); }

  /// Agrees with all members of the world on who is to have which rows, and fetches those that the store
  /// lacks. What it is to give up it still has. False: nobody has some of the rows. All members are told the
  /// same. Throws edl::error where a member has other options.
  bool gather(collective::group& with, std::uint64_t world);

  /// Gives up what it is not to have, when all members have gathered. What a world that breaks before has
  /// moved is not lost, whoever goes on.
  void resolve(collective::group& with);

  /// Whether members have different rows.
  bool divided() const { return divided_; }

  /// Weights of the rows, from who has them, when the member is at this version.
  void pull(sparse::minibatch_rows& rows, std::uint64_t world, std::uint64_t version);

  /// The store has made a step, after which its tables may not be small any more. On the node's thread.
  void stepped();

  /// Does what `stepped` has found, now that all members have made that step. They find the same, as it
  /// follows from the number of rows alone. True: this member has given rows up.
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
  slot_set has_;  // of whose rows the store has all; it may hold more, which are on their way
  std::optional<sparse::divided_rows> rows_;  // by group
};

}  // namespace edl::replica

#ifdef EDL_HEADER_ONLY
#include "edl/job/replica/row_shares.ipp"
#endif
