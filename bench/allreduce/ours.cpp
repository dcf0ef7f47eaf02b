// SPDX-License-Identifier: Apache-2.0
// This project's groups: over TCP, over Unix sockets, and in the memory that Unix sockets let them share.
#include <fcntl.h>
#include <unistd.h>

#include "contestant.hpp"
#include "edl/base/net/security/tls.hpp"
#include "edl/base/net/security/token.hpp"
#include "edl/job/collective/group.hpp"
#include "edl/job/collective/topology.hpp"

namespace bench {
namespace {

using edl::net::byte_stream;
using edl::net::tls_session;

// All of a member's links at once, so that no order of them can be wrong.
std::vector<byte_stream> encrypted(std::vector<edl::net::descriptor> sockets, std::size_t rank) {
  edl::net::tls_context const context(edl::net::token("the token of the benchmark"), "bench");
  std::vector<std::unique_ptr<tls_session>> sessions(sockets.size());
  for (std::size_t i = 0; i < sockets.size(); ++i)
    if (sockets[i])
      sessions[i] = std::make_unique<tls_session>(
          context, sockets[i].get(), rank < i ? tls_session::side::client : tls_session::side::server);
  for (bool done = false; !done;) {
    done = true;
    for (auto const& s : sessions) done = (!s || s->handshake() == tls_session::step::done) && done;
    if (!done) ::usleep(100);
  }
  std::vector<byte_stream> links;
  for (std::size_t i = 0; i < sockets.size(); ++i)
    links.push_back(sessions[i] ? byte_stream(std::move(sockets[i]), std::move(sessions[i])) : byte_stream());
  return links;
}

std::vector<byte_stream> plain(std::vector<edl::net::descriptor> sockets) {
  std::vector<byte_stream> links;
  for (auto& s : sockets) links.push_back(s ? byte_stream(std::move(s)) : byte_stream());
  return links;
}

}  // namespace

std::vector<contestant> ours(int size) {
  namespace collective = edl::collective;
  struct way {
    char const* over;
    transport links;
    collective::group_options options;
    bool tls = false;
  };
  std::vector<contestant> all;
  for (way const& w :
       {way{"TCP", transport::tcp, {}}, way{"TLS", transport::tcp, {}, true},
        way{"Unix", transport::local, {.shared_memory = false}}, way{"memory", transport::local, {}}}) {
    auto const links = std::make_shared<mesh>(
        connect(size, w.links, [size](int a) { return collective::partners(a, size); }));
    all.push_back({"edl", "edl", w.over, true, [links, o = w.options, tls = w.tls](int rank) {
                     auto mine = std::move((*links)[std::size_t(rank)]);
                     links->clear();
                     for (auto const& link : mine)
                       if (link) ::fcntl(link.get(), F_SETFL, O_NONBLOCK);
                     auto const group = std::make_shared<collective::group>(
                         rank, tls ? encrypted(std::move(mine), std::size_t(rank)) : plain(std::move(mine)),
                         o);
                     return [group](std::span<float> values) -> ready {
                       return [group, values] { group->all_reduce(values); };
                     };
                   }});
  }
  return all;
}

}  // namespace bench
