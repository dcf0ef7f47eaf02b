// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "edl/base/net/byte_stream.hpp"

namespace bench {

enum class transport { tcp, local };

/// Sockets between some members, made before they are forked: `links[a][b]` is a's end of the link to b.
using mesh = std::vector<std::vector<edl::net::descriptor>>;

/// Links those pairs of `size` members that `wanted(a)` names, as the net would set them up.
mesh connect(int size, transport over, std::function<std::vector<int>(int a)> const& wanted);

/// What a member does once per sample: told the numbers, it may set itself up for them, outside of what is
/// measured; what it returns sums them once, in place.
using ready = std::function<void()>;
using member = std::function<ready(std::span<float> values)>;

/// One way to sum. `join` runs in the member's own process and may wait for the others'.
struct contestant {
  std::string family, name, over;
  bool sums = true;  ///< false: moves bytes only
  std::function<member(int rank)> join;
};

std::vector<contestant> bare_sockets(int size);
std::vector<contestant> ours(int size);
std::vector<contestant> gloo(int size);

}  // namespace bench
