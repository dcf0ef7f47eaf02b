// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace edl {

/// The version of the headers. CMake reads it from this line.
inline constexpr char const package_version[] = "0.1.0";

}  // namespace edl
