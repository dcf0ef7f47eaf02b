// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace edl::platform {

enum class role { master, server, worker };

/// One process of a job. Its name in logs is "master", "ps-0", "worker-3".
struct instance {
  role what = role::worker;
  std::uint32_t id = 0;
  friend auto operator<=>(instance const&, instance const&) = default;
};

std::string name(instance const& who);

/// How a process ended.
struct ending {
  instance who;
  int code = 0;        ///< exit code, when it left by itself
  int signal = 0;      ///< what killed it; 0 when it left by itself
  bool asked = false;  ///< it was told to stop
  bool failed() const { return !asked && (code != 0 || signal != 0); }
};

/// In words: "exited with code 3", "was killed by signal 9 (Killed)".
std::string describe(ending const& e);

using environment = std::vector<std::pair<std::string, std::string>>;

/// What starts and stops the processes of a job: this machine, or a cluster. It only does as told and reports
/// what ended; who is replaced is the master's decision.
template <class P>
concept platform = requires(P p, instance who, environment const& env, std::chrono::milliseconds grace) {
  p.start(who, env);
  p.stop(who, grace);
};

}  // namespace edl::platform

#ifdef EDL_HEADER_ONLY
#include "edl/platform/platform.ipp"
#endif
