// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "world/world.hpp"

namespace world {

/// What a program of histories does first: it begins anew where addresses are random, or where the machine's
/// environment could be seen, and brings all that is made once for a program to its final state.
void prepare(int argc, char** argv);

/// Runs a history in an OS process of its own, which ends with it: what killed processes leave behind goes,
/// too. A crash of that process, or that it does nothing for so many seconds of real time, is a failure with
/// words. What the driver leaves in `note` comes back in the result's. The caller has no other threads.
struct forked_result : history_result {
  std::string note;
};
forked_result run_forked(history_options const& options, std::function<void(std::string& note)> driver,
                         unsigned real_seconds = 120);

/// To the OS process' own standard output.
void print(std::string_view text);
void print(history_result const& of);

}  // namespace world
