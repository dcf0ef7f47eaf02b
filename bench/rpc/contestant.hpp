// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace bench {

inline constexpr std::size_t small_bytes = 64, largest = 100'000'000;

enum class load { ping, in_flight_16, push_4, pull_4, push_100, pull_100 };

inline std::size_t bytes_of(load l) {
  switch (l) {
    case load::push_4:
    case load::pull_4:
      return 4u << 20;
    case load::push_100:
    case load::pull_100:
      return largest;
    default:
      return 0;
  }
}
inline bool pushes(load l) { return l == load::push_4 || l == load::push_100; }
inline int repeats(load l) { return l == load::ping ? 3'000 : bytes_of(l) == largest ? 8 : 60; }

/// One way to make calls, over one transport. `serve` runs in a process of its own until that is killed: it
/// listens, then says where. `measure` runs in another and returns microseconds per call, or, for
/// `in_flight_16`, calls per second.
struct contestant {
  std::string name, transport;
  std::function<void(std::function<void(std::string const&)> listening)> serve;
  std::function<std::vector<double>(std::string const& where, load)> measure;
};

std::vector<contestant> bare_sockets();
std::vector<contestant> ours();
std::vector<contestant> grpc();

/// Microseconds of each of some calls, after a few that do not count.
template <class Call>
std::vector<double> timed(load l, Call&& call) {
  using clock = std::chrono::steady_clock;
  std::vector<double> us;
  int const n = repeats(l);
  for (int i = -(n / 10 + 1); i < n; ++i) {
    auto const begin = clock::now();
    call();
    if (i >= 0) us.push_back(std::chrono::duration<double, std::micro>(clock::now() - begin).count());
  }
  return us;
}

}  // namespace bench
