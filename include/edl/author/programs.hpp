// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "edl/job/train/setup/program.hpp"

namespace edl::author {

/// Makes the program of a model.
using program_maker = train::program (*)();

/// The models that the sources of this program, or of this shared library, register.
inline std::vector<program_maker>& programs() {
  static std::vector<program_maker> all;
  return all;
}

}  // namespace edl::author
