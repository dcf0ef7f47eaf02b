// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "edl/core/ledger.hpp"
#include "edl/core/random.hpp"

namespace edl::data {

/// The number of minibatches of the records [begin, end); the last may be short.
constexpr std::uint64_t minibatches(std::uint64_t begin, std::uint64_t end, std::uint64_t minibatch_size) {
  return begin < end ? (end - begin - 1) / minibatch_size + 1 : 0;
}

/// The order in which a task's records [begin, end) are trained. It is a permutation that depends only on
/// (seed, epoch, index), so that every process can recompute it. Minibatch i has positions [i·B, (i+1)·B).
/// Within a minibatch the loader puts rows in ascending order of records, so that a file is read in one
/// direction.
inline void task_order(std::uint64_t seed, task_key const& task, std::uint64_t begin, std::uint64_t end,
                       std::vector<std::uint64_t>& order) {
  order.resize(std::size_t(end > begin ? end - begin : 0));
  std::iota(order.begin(), order.end(), begin);
  constexpr std::uint64_t purpose = 0x6F72646572;  // keeps these draws apart from others of the same seed
  shuffle(order, random_stream{seed, 0}.child(purpose).child(task.epoch).child(task.index));
}

}  // namespace edl::data
