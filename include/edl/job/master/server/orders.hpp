// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edl/base/net/node.hpp"
#include "edl/base/net/request.hpp"
#include "edl/base/wire/message.hpp"
#include "edl/core/clock.hpp"
#include "edl/job/master/coordinator.hpp"
#include "edl/job/master/server/model_keepers.hpp"

namespace edl::master {

struct order_terms {
  char const* name = "";
  std::optional<std::uint64_t> generation = {};  ///< the order is void when another begins
  std::chrono::milliseconds timeout{};           ///< 0: without end
  bool waits = true;                             ///< retries after `not_ready`
};

/// Repeats the master's orders until they get a reply, or are void, and lists those without a reply. Its
/// arguments must outlive it. Thread safety: only on the node's thread.
class orders {
 public:
  orders(net::node& on, coordinator const& decisions, model_keepers const& keepers)
      : node_(on), decisions_(decisions), keepers_(keepers) {}

  /// Repeats a call until it gets a reply; throws `call_error`, `cancelled` if it is void: the member or the
  /// generation is gone.
  asio::awaitable<std::string> order(keeper to, net::outgoing what, order_terms terms);

  /// Sends each of them the same request, for its own range.
  template <class Request>
  asio::awaitable<std::vector<std::string>> ask_all(std::vector<keeper> target, std::uint16_t method,
                                                    Request request, std::chrono::milliseconds timeout,
                                                    order_terms terms) {
    std::vector<std::string> messages;
    for (keeper const& k : target) {
      request.set_range(k.range);
      messages.push_back(wire::pack(request));
    }
    return ask_each(std::move(target), method, std::move(messages), timeout, terms);
  }
  asio::awaitable<std::vector<std::string>> ask_each(std::vector<keeper> target, std::uint16_t method,
                                                     std::vector<std::string> messages,
                                                     std::chrono::milliseconds timeout, order_terms terms);

  asio::awaitable<void> pause(std::chrono::milliseconds d = std::chrono::milliseconds(50));

  struct waiting {
    keeper target;  ///< empty: the storage
    std::string operation, reason;
    time_point since;
  };
  /// An entry in the list of waits, during its lifetime.
  class waiting_entry {
   public:
    waiting_entry(orders& of, waiting one)
        : all_(of.waiting_), it_(all_.insert(all_.end(), std::move(one))) {}
    waiting_entry(waiting_entry const&) = delete;
    ~waiting_entry() { all_.erase(it_); }
    waiting* operator->() const { return &*it_; }

   private:
    std::list<waiting>& all_;
    std::list<waiting>::iterator it_;
  };

  /// Descriptions of orders without a reply.
  std::vector<std::string> unanswered(time_point now) const;

 private:
  net::node& node_;
  coordinator const& decisions_;
  model_keepers const& keepers_;
  std::list<waiting> waiting_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server/orders.ipp"
#endif
