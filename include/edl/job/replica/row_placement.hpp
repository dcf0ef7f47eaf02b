// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstddef>
#include <span>
#include <vector>

#include "edl/compute/sparse/hash.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/partition.hpp"

namespace edl::replica {

/// Hash slots of which a member has all rows.
using slot_set = std::bitset<sparse::hash_slots>;

slot_set slots_in(element_range slots);

/// Which members of a world have which rows of the tables. The members are divided into groups. Every group
/// has an equal share of the hash slots (`partition`), and each of its members has all rows of these. It is a
/// function of what all members have.
class row_placement {
 public:
  /// Each row is on at least `copies` members; with 0, or fewer than twice as many members, on all of them.
  /// `has`: the slots of each member, by rank, perhaps none; at least one member. Group sizes differ by at
  /// most one. The first members, one per group, together have all rows: so a job that removes its newest
  /// members, except these, loses none. Otherwise members stay in the group whose rows they have.
  row_placement(std::span<slot_set const> has, int copies, int wanted = 0);

  int groups() const { return groups_; }
  int group_of(int rank) const {
    invariant(rank >= 0 && std::size_t(rank) < group_.size(), "a rank is below the number of members");
    return group_[std::size_t(rank)];
  }
  element_range slots_of(int group) const {
    return partition(sparse::hash_slots, std::uint32_t(groups_), std::uint32_t(group));
  }

  /// The member from which `rank` requests rows of another group. Different ranks use different ones.
  int source(int group, int rank) const {
    invariant(group >= 0 && group < groups_, "the group of rows exists");
    auto const& of = members_[std::size_t(group)];
    return of[std::size_t(rank) % of.size()];
  }

 private:
  int groups_;
  std::vector<int> group_;                 // of each member
  std::vector<std::vector<int>> members_;  // of each group, by rank
};

}  // namespace edl::replica

#ifdef EDL_HEADER_ONLY
#include "edl/job/replica/row_placement.ipp"
#endif
