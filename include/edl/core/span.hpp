// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace edl {

template <class T>
using view = std::span<T const>;  ///< elements that are only read

using bytes = std::span<std::byte const>;

}  // namespace edl
