// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace edl {

/// What an operation may do to its result before it is stored. `gelu`: normalisations alone.
enum class activation { none, relu, gelu };

}  // namespace edl
