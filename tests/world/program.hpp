// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "world/world.hpp"

namespace world {

/// What a program of histories does first: it begins anew where addresses are random, or where the machine's
/// environment could be seen, and brings all that is made once for a program to its final state.
void prepare(int argc, char** argv);

/// To the OS process' own standard output.
void print(std::string_view text);
void print(history_result const& of);

}  // namespace world
