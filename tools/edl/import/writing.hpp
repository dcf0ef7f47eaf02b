// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "import/lifting.hpp"

namespace edl::tool::lifting {

/// A program with the network, as C++, and the full names of its variables.
struct program {
  std::string text;
  std::vector<std::pair<std::string, variable const*>> variables;
};

/// Whether it is a word of C++, or a name that the written source has.
bool is_taken(std::string const& name);

/// `name`: of the struct. `origin`: the file that it was imported from. The variables are those of `of`.
program write_program(network const& of, std::string const& name, std::string const& origin);

}  // namespace edl::tool::lifting
