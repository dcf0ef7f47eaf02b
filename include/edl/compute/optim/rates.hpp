// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>

namespace edl {

/// Variables whose names match `names` are trained at `factor` times the rate. `names` are names, or patterns
/// of them as of `--freeze`, with ',' between two. With `steps` they are trained in that many steps alone,
/// and then stay as they are.
struct rate_of {
  std::string_view names;
  float factor = 1;
  std::uint64_t steps = 0;  ///< 0: all

  constexpr bool valid() const {
    return !names.empty() && factor > 0 && factor <= std::numeric_limits<float>::max();
  }
};

/// A model's rates for parts of itself: `edl::rates{{"conv2d*", 0.1f}, {"dense/kernel", 2.0f}}`. Where
/// several match a variable, the last one counts, and of `steps` the last one that has some.
class rates {
 public:
  static constexpr std::size_t most = 16;

  constexpr rates() = default;
  constexpr rates(std::initializer_list<rate_of> parts) : count_(parts.size()) {
    std::copy_n(parts.begin(), std::min(parts.size(), most), parts_.begin());
  }

  constexpr std::span<rate_of const> parts() const { return std::span(parts_).first(std::min(count_, most)); }

  /// Whether there are at most `most` parts, with names and factors above 0.
  constexpr bool valid() const {
    return count_ <= most && std::ranges::all_of(parts(), [](rate_of const& r) { return r.valid(); });
  }

 private:
  std::array<rate_of, most> parts_{};
  std::size_t count_ = 0;
};

}  // namespace edl
