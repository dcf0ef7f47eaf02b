// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace bench {

/// Calls print(name, derived, by hand) for each operation, with functions that compute it once, on one
/// thread.
using print_pair = std::function<void(std::string const& name, std::function<void()> const& derived,
                                      std::function<void()> const& by_hand)>;
void compare_derived(print_pair const& print);

/// Both passes of a layer like that of peer.py, on one thread.
std::function<void()> own_swish();

}  // namespace bench
