// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <asio/awaitable.hpp>
#include <charconv>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "edl/base/net/status.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/collective/meeting.hpp"
#include "edl/job/collective/topology.hpp"

namespace edl::collective {

struct meeting::state {
  using place = std::pair<std::uint64_t, int>;  // group, rank
  static constexpr std::size_t most_waiting = 4096;

  std::mutex lock;
  std::condition_variable changed;
  std::map<place, net::byte_stream> links;
  std::map<place, std::string> failures;
  std::uint64_t interrupted = 0;

  void put(place where, net::byte_stream link) {
    std::lock_guard const guard(lock);
    // Drop links to interrupted groups, and limit their number: a peer may open as many as it likes.
    if (where.first <= interrupted || links.size() >= most_waiting) return;
    links.insert_or_assign(where, std::move(link));
    changed.notify_all();
  }
  void fail(place where, std::string why) {
    std::lock_guard const guard(lock);
    failures.insert_or_assign(where, std::move(why));
    changed.notify_all();
  }
  void forget(std::uint64_t number) {
    links.erase(links.begin(), links.upper_bound({number, std::numeric_limits<int>::max()}));
    failures.erase(failures.begin(), failures.upper_bound({number, std::numeric_limits<int>::max()}));
  }
};

EDL_INLINE meeting::meeting(net::node& on) : node_(on), state_(std::make_shared<state>()) {}

EDL_INLINE meeting::~meeting() { interrupt(std::numeric_limits<std::uint64_t>::max()); }

EDL_INLINE net::stream_handler meeting::handler() {
  return [s = state_](net::byte_stream link, std::string const& what, std::string const&) {
    state::place where{};
    constexpr std::string_view start = "group/";
    if (!what.starts_with(start)) return;
    char const *const last = what.data() + what.size(), *at = what.data() + start.size();
    auto const number = std::from_chars(at, last, where.first);
    if (number.ec != std::errc{} || number.ptr == last || *number.ptr != '/') return;
    auto const rank = std::from_chars(number.ptr + 1, last, where.second);
    if (rank.ec != std::errc{} || rank.ptr != last || where.second < 0) return;
    s->put(where, std::move(link));
  };
}

EDL_INLINE void meeting::interrupt(std::uint64_t number) {
  std::lock_guard const guard(state_->lock);
  state_->interrupted = std::max(state_->interrupted, number);
  state_->forget(number);
  state_->changed.notify_all();
}

EDL_INLINE std::unique_ptr<group> meeting::form(std::uint64_t number, int rank,
                                                std::vector<participant> const& all,
                                                std::chrono::milliseconds timeout, group_options o) {
  int const size = int(all.size());
  invariant(rank >= 0 && rank < size, "a member's rank is below the size of its group");
  auto const wanted = partners(rank, size);
  for (int const other : wanted) {
    if (other < rank) continue;  // of two members the lower one opens the link; this one waits for it
    participant const& peer = all[std::size_t(other)];
    bool const begun = node_.spawn([this, s = state_, peer, number, rank, other,
                                    timeout]() -> asio::awaitable<void> {
      try {
        s->put({number, other}, co_await net::open_stream(node_, peer.addresses, peer.name,
                                                          fmt::format("group/{}/{}", number, rank), timeout));
      } catch (net::call_error const& e) {
        s->fail({number, other}, e.what());
      }
    });
    if (!begun) throw broken("the network of this process is stopping");
  }
  std::vector<net::byte_stream> links(all.size());
  auto const until = clock::now() + timeout;
  std::unique_lock guard(state_->lock);
  for (int const other : wanted) {
    auto const arrived = [&] {
      return state_->interrupted >= number || state_->links.contains({number, other}) ||
             state_->failures.contains({number, other});
    };
    bool const in_time = state_->changed.wait_until(guard, until, arrived);
    if (state_->interrupted >= number) throw broken(fmt::format("group {} is given up", number));
    if (auto const why = state_->failures.find({number, other}); why != state_->failures.end())
      throw broken(why->second, other);
    if (!in_time)
      throw broken(fmt::format("{} did not join group {} within {} ms", all[std::size_t(other)].name, number,
                               timeout.count()),
                   other);
    auto const link = state_->links.find({number, other});
    invariant(link != state_->links.end(), "a received link stays until it is taken");
    links[std::size_t(other)] = std::move(link->second);
    state_->links.erase(link);
  }
  state_->forget(number);
  guard.unlock();
  return std::make_unique<group>(rank, std::move(links), o);
}

}  // namespace edl::collective
