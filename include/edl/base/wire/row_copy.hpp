// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"

namespace edl::wire {

/// Requests a table's rows from the keeper of a range, some at a time: builds the requests and processes the
/// replies. The caller makes the calls.
class row_copy {
 public:
  /// Some rows, and some candidates, as `sparse::for_each_row` reads them; `values`: floats of a row.
  using sink = std::function<void(bytes rows, std::size_t values, bytes candidates)>;

  /// `slots`: hash slots of the range.
  row_copy(std::uint64_t generation, std::uint32_t range, std::uint32_t table, element_range slots)
      : generation_(generation), range_(range), table_(table), slot_(slots.first), last_(slots.last) {}

  bool done() const { return slot_ >= last_; }
  std::string request() const;

  /// Processes a reply of `from`. Throws edl::error for one that does not make progress.
  void take(std::string const& answer, std::string_view from, sink const& to);

 private:
  std::uint64_t generation_;
  std::uint32_t range_, table_;
  std::size_t slot_, last_;
  std::uint32_t row_ = 0;
};

}  // namespace edl::wire

#ifdef EDL_HEADER_ONLY
#include "edl/base/wire/row_copy.ipp"
#endif
