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

/// The contents of a push.
struct model_update {
  std::vector<float> values;  ///< gradients, then changes of state
  std::vector<row_update> tables;
};

/// Memory for one push: taken from a pool, and returned afterwards. The pool must outlive it.
class push_memory {
 public:
  /// For the payload that `p` announces to this store; `bfloat16`: its gradients have that format. Throws
  /// `invalid`, before it allocates memory, if the payload has another size.
  push_memory(std::vector<model_update>& pool, store const& of, wire::PushRequest const& p, bool bfloat16,
              std::uint64_t payload);
  push_memory(push_memory const&) = delete;
  push_memory& operator=(push_memory const&) = delete;
  ~push_memory() { pool_.push_back(std::move(memory_)); }

  /// The destination of the payload. Values to convert are stored at the end of their final place.
  std::vector<std::span<std::byte>> into();

  /// Converts bfloat16 values to float32.
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
