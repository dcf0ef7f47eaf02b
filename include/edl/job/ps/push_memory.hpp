// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "edl/compute/sparse/minibatch_rows.hpp"
#include "edl/core/span.hpp"
#include "edl/job/ps/row_update.hpp"

namespace edl::wire {
class PushRequest;
}

namespace edl::ps {

class store;

/// What a push brings.
struct model_update {
  std::vector<float> values;  ///< gradients, then changes of state
  std::vector<row_update> tables;
};

/// Memory for one push: taken from a pool, and given back when the push is done with. The pool outlives it.
class push_memory {
 public:
  /// For what `p` announces to this store; `bfloat16`: its gradients come so. Throws `invalid`, before it
  /// takes memory, where the payload has another size.
  push_memory(std::vector<model_update>& pool, store const& of, wire::PushRequest const& p, bool bfloat16,
              std::uint64_t payload);
  push_memory(push_memory const&) = delete;
  push_memory& operator=(push_memory const&) = delete;
  ~push_memory() { pool_.push_back(std::move(memory_)); }

  /// Where the payload belongs. What is to be spread comes behind the place where it will be.
  std::vector<std::span<std::byte>> into();

  /// Makes float32 of what came as bfloat16.
  void spread();

  view<float> values() const { return memory_.values; }
  std::vector<sparse::row_gradients> rows() const;

  /// The same for another server, as float32.
  std::vector<bytes> as_payload() const;

 private:
  std::vector<model_update>& pool_;
  model_update memory_;
  std::size_t parameters_;
  bool bfloat16_;
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/push_memory.ipp"
#endif
