// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "edl/job/collective/group.hpp"
#include "edl/job/collective/topology.hpp"

/// Groups whose members are threads of a test.
namespace members {

using edl::collective::group;
using edl::collective::group_options;

using links = std::vector<std::vector<edl::net::byte_stream>>;

inline links linked(int size) {
  links all;
  for (int r = 0; r < size; ++r) all.emplace_back(std::size_t(size));
  for (int a = 0; a < size; ++a)
    for (int b : edl::collective::partners(a, size)) {
      if (b < a) continue;
      int pair[2];
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
      all[std::size_t(a)][std::size_t(b)] = edl::net::descriptor(pair[0]);
      all[std::size_t(b)][std::size_t(a)] = edl::net::descriptor(pair[1]);
    }
  return all;
}

/// Groups of `size` members in this process, joined by socket pairs.
inline std::vector<std::unique_ptr<group>> connected(int size, group_options o = {}) {
  auto sockets = linked(size);
  std::vector<std::unique_ptr<group>> all;
  for (int r = 0; r < size; ++r)
    all.push_back(std::make_unique<group>(r, std::move(sockets[std::size_t(r)]), o));
  return all;
}

inline void side_by_side(int size, std::function<void(int)> const& work) {
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) threads.emplace_back([&, r] { work(r); });
  for (auto& t : threads) t.join();
}

}  // namespace members
