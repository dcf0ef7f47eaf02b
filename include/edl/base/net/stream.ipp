// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/error.hpp>
#include <asio/system_error.hpp>
#include <memory>

#include "edl/base/net/security/handshake.hpp"
#include "edl/base/net/security/secure_socket.hpp"
#include "edl/base/net/status.hpp"
#include "edl/base/net/stream.hpp"
#include "edl/base/net/time_limit.hpp"
#include "edl/base/net/transport.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::net {

EDL_INLINE asio::awaitable<byte_stream> open_stream(node& on, std::vector<address> peer, std::string name,
                                                    std::string what, std::chrono::milliseconds timeout) {
  std::stable_partition(peer.begin(), peer.end(),
                        [](auto const& a) { return a.over == address::transport::local; });
  auto const until = clock::now() + timeout;
  std::string why;
  for (address const& where : peer) {
    auto const s = std::make_shared<secure_socket>(on.executor());
    bool late = false;
    std::string failed;
    try {
      detail::time_limit const limit(on.executor(), until, [s, &late] {
        late = true;
        s->close();
      });
      co_await detail::connect(s->plain(), where, late);
      co_await greet_server(*s, on.options(), on.tls(), where, what);
    } catch (asio::system_error const& e) {
      failed = late ? fmt::format("no reply within {} ms", timeout.count()) : e.code().message();
    } catch (std::exception const& e) {
      failed = e.what();
    }
    if (!late && failed.empty()) co_return s->release();
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", to_string(where), failed);
  }
  throw call_error(status::unavailable, fmt::format("{} cannot be reached: {}", name, why));
}

}  // namespace edl::net
