// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <span>
#include <thread>
#include <utility>

#include "edl/base/net/blocking.hpp"
#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/ps/copy.hpp"
#include "edl/job/replica/follower.hpp"
#include "edl/job/replica/on_node.hpp"
#include "edl/job/worker/links.hpp"

namespace edl::replica {
namespace detail {

inline constexpr std::chrono::seconds begin_in{10}, copy_from_others_in{600};

// How often a follower that waits for a reply checks whether to stop, and how soon it retries.
inline constexpr std::chrono::milliseconds look_again{20}, begin_again{2};

// If the followed world makes no step for this long, the follower enters the next one as it is.
inline constexpr std::chrono::seconds step_in{60};

}  // namespace detail

EDL_INLINE std::string copied_line(std::uint64_t version, std::uint32_t from, std::size_t values,
                                   time_point began) {
  return fmt::format("took version {} from worker {} ({} bytes in {} ms)", version, from,
                     values * sizeof(float),
                     std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - began).count());
}

EDL_INLINE std::string follower::ask(net::channel& source, net::outgoing what, bool for_step) const {
  invariant(!for_step || has_, "only a worker with a copy requests steps");
  net::started_call call = net::start(source, std::move(what));
  auto goes_on = clock::now();  // when the followed world was last seen going on
  while (!call.wait_for(detail::look_again)) {
    if (with_.stopping()) throw worker::interrupted("shutting down while following another worker");
    if (!for_step || with_.over() <= has_->world)
      goes_on = clock::now();
    else if (clock::now() - goes_on > with_.next_world_in)
      throw net::call_error(net::status::not_ready, "its world has ended, and it has made no step since");
  }
  return call.get().message;
}

EDL_INLINE std::optional<follower::copy> follower::follow(net::channel& source, std::uint32_t from) {
  has_.reset();
  try {
    auto const began = clock::now();
    std::vector<float> values(with_.store->copy_size());
    begin(source, values);
    invariant(has_.has_value(), "a copy is of a version of a world");
    with_.log.info(copied_line(has_->version, from, values.size(), began));
    values = std::vector<float>(with_.store->elements().size());
    std::uint64_t const first = has_->version;
    while (!make_next(source, values)) continue;
    with_.log.info(
        fmt::format("has made the {} steps since, while the others went on", has_->version - first));
  } catch (net::call_error const& e) {  // what it has copied is still a version of that world
    with_.log.warning(fmt::format("cannot follow worker {}: {}", from, e.what()));
  } catch (worker::interrupted const&) {
    throw;
  } catch (error const& e) {
    has_.reset();
    with_.log.warning(fmt::format("cannot follow worker {}, and discards its copy: {}", from, e.what()));
  }
  return has_;
}

// Copies the state of the source.
EDL_INLINE void follower::begin(net::channel& source, std::vector<float>& values) {
  wire::FollowRequest follow;
  follow.set_worker(with_.worker);
  follow.set_begin(true);
  for (auto const until = clock::now() + detail::begin_in;;) {
    auto const at = wire::unpack<wire::FollowReply>(
        ask(source, {.method = wire::method::follow, .message = wire::pack(follow)}), source.name());
    wire::CopyRequest request;
    request.set_generation(at.generation());
    net::outgoing what{.method = wire::method::copy,
                       .message = wire::pack(request),
                       .timeout = detail::copy_from_others_in,
                       .idempotent = true,
                       .patience = net::some_patience};
    what.into.push_back(std::as_writable_bytes(std::span(values)));
    try {
      std::string const answer = ask(source, std::move(what));
      auto [segments, row_segments] = ps::segments_of_copy(answer, source.name());
      has_ = on_node(with_.node, [&] {
        ps::store& store = *with_.store;
        store.restore(std::move(segments), std::move(row_segments), values);
        if (store.version() > 0) store.frozen().advanced(store.version(), store);  // like those that made it
        return copy{at.generation(), store.version()};
      });
      return;
    } catch (net::call_error const& e) {
      // The source's world has ended meanwhile.
      if (e.code() != net::status::not_ready || clock::now() > until) throw;
    }
    std::this_thread::sleep_for(detail::begin_again);
  }
}

// Repeats a step of the source. Returns true if the members end their world with it, so that this worker can
// join the next one.
EDL_INLINE bool follower::make_next(net::channel& source, std::vector<float>& sums) {
  invariant(has_.has_value(), "steps are made on a copy");
  wire::FollowRequest request;
  request.set_worker(with_.worker);
  request.set_version(has_->version);
  net::outgoing what{
      .method = wire::method::follow, .message = wire::pack(request), .timeout = detail::step_in};
  what.into.push_back(std::as_writable_bytes(std::span(sums)));
  auto const next = wire::unpack<wire::FollowReply>(ask(source, std::move(what), true), source.name());
  std::vector<contribution> all;
  for (auto const& m : next.minibatches())
    all.push_back({{{m.task().epoch(), m.task().index()}, m.minibatch(), m.minibatches()},
                   m.records(),
                   m.skipped(),
                   m.has_rate() ? m.rate() : 1});
  has_->version = on_node(with_.node, [&] {
    with_.store->frozen().forget();  // no member knows of them
    with_.store->step(all, sums);
    return with_.store->version();
  });
  invariant(sums.size() == with_.store->elements().size(), "a step has a sum for each element");
  if (has_->version != next.version())
    throw error(
        fmt::format("a step of {} led to version {}, not {}", source.name(), has_->version, next.version()));
  has_->world = next.generation();
  return next.last();
}

}  // namespace edl::replica
