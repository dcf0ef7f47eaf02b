// SPDX-License-Identifier: Apache-2.0
// This project's groups: over TCP, over Unix sockets, and in the memory that Unix sockets let them share.
#include <fcntl.h>

#include "contestant.hpp"
#include "edl/collective/group.hpp"
#include "edl/collective/topology.hpp"

namespace bench {

std::vector<contestant> ours(int size) {
  namespace collective = edl::collective;
  struct way {
    char const* over;
    transport links;
    collective::group_options options;
  };
  std::vector<contestant> all;
  for (way const& w :
       {way{"TCP", transport::tcp, {}}, way{"Unix", transport::local, {.shared_memory = false}},
        way{"memory", transport::local, {}}}) {
    auto const links = std::make_shared<mesh>(
        connect(size, w.links, [size](int a) { return collective::partners(a, size); }));
    all.push_back({"edl", "edl", w.over, true, [links, o = w.options](int rank) {
                     auto mine = std::move((*links)[std::size_t(rank)]);
                     links->clear();
                     for (auto const& link : mine)
                       if (link) ::fcntl(link.get(), F_SETFL, O_NONBLOCK);
                     auto const group = std::make_shared<collective::group>(rank, std::move(mine), o);
                     return [group](std::span<float> values) -> ready {
                       return [group, values] { group->all_reduce(values); };
                     };
                   }});
  }
  return all;
}

}  // namespace bench
