// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <charconv>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/quantity.hpp"
#include "edl/platform/kubernetes/cluster.hpp"
#include "edl/platform/kubernetes/fields.hpp"

namespace edl::platform::kubernetes {
namespace detail {

/// Requests of a master are short, and tried again by it: a thread must not be kept long from the others.
inline client::options impatient() {
  return {.timeout = std::chrono::seconds(10), .patience = std::chrono::seconds(2), .agent = "edl-master"};
}

inline constexpr std::uint64_t most_notes = 1000;  // that wait to be written

inline std::string stamp(std::chrono::system_clock::time_point at) {
  return fmt::format("{:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(at));
}

inline pods::options options_of(job_spec const& spec) {
  pods::options o{.job = spec.name, .server = spec.server, .worker = spec.worker};
  for (role_spec* const of : {&o.server, &o.worker}) of->limit = limit_of(of->request, of->limit);
  return o;
}

}  // namespace detail

EDL_INLINE cluster::cluster(net::node& on, access via, job_spec spec, owner self, observer to, logger log)
    : node_(on),
      client_(std::move(via), detail::impatient()),
      spec_(std::move(spec)),
      self_(std::move(self)),
      to_(std::move(to)),
      log_(std::move(log)),
      pods_(detail::options_of(spec_)) {
  watcher_ = std::make_unique<watcher>(
      client_, pod_path(""), job_selector(spec_.name),
      watcher::callbacks{.listed = [this](nlohmann::json const& items) { listed(items); },
                         .changed = [this](std::string const& type,
                                           nlohmann::json const& object) { changed(type, object); }},
      log_);
  node_.spawn([this] { return tick(); });
}

EDL_INLINE cluster::~cluster() {
  watcher_.reset();
  requests_.join();
  notes_.join();
}

EDL_INLINE std::string cluster::pod_path(std::string const& name) const {
  return fmt::format("/api/v1/namespaces/{}/pods{}{}", spec_.space, name.empty() ? "" : "/", name);
}

EDL_INLINE void cluster::listed(nlohmann::json const& items) {
  std::vector<pod_status> all;
  for (nlohmann::json const& one : items)
    if (auto s = read_pod(one)) {
      if (s->who.what == role::master)
        see_self(one);
      else if (s->owner == self_.uid)  // others are left from a job of that name, and about to go
        all.push_back(std::move(*s));
    }
  node_.post([this, all = std::move(all)] {
    pods_.listed(all, std::chrono::steady_clock::now());
    obey();
  });
}

EDL_INLINE void cluster::changed(std::string const& type, nlohmann::json const& object) {
  auto s = read_pod(object);
  if (!s) return;
  if (s->who.what == role::master) return see_self(object);
  if (s->owner != self_.uid) return;
  node_.post([this, gone = type == "DELETED", s = std::move(*s)] {
    auto const now = std::chrono::steady_clock::now();
    gone ? pods_.deleted(s, now) : pods_.changed(s, now);
    obey();
  });
}

EDL_INLINE void cluster::start(instance who, std::optional<std::uint32_t> instead_of) {
  pods_.start(who, instead_of, std::chrono::steady_clock::now());
  obey();
}

EDL_INLINE void cluster::stop(instance who, std::chrono::milliseconds grace) {
  pods_.stop(who, std::chrono::ceil<std::chrono::seconds>(grace));
  obey();
}

EDL_INLINE void cluster::stop_all(std::chrono::milliseconds grace) {
  auto const none_within = [this](std::chrono::milliseconds limit) {
    auto const until = std::chrono::steady_clock::now() + limit;
    while (any_ && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return !any_;
  };
  // Who leaves by itself stays to be looked at.
  if (none_within(grace)) return;
  node_.post([this, grace] {
    pods_.stop_all(std::chrono::ceil<std::chrono::seconds>(grace));
    obey();
  });
  // What is left then goes with the master's pod, its owner.
  none_within(grace + std::chrono::seconds(1));
}

EDL_INLINE asio::awaitable<void> cluster::tick() {
  asio::steady_timer timer(node_.executor());
  for (;;) {
    pods_.tick(std::chrono::steady_clock::now());
    obey();
    timer.expires_after(std::chrono::milliseconds(250));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

EDL_INLINE void cluster::obey() {
  // What one command causes (an ending is told, its successor wanted) may be asked for before the rest.
  for (auto commands = pods_.take_commands(); !commands.empty(); commands = pods_.take_commands())
    for (pod_command const& c : commands) std::visit([this](auto const& one) { execute(one); }, c);
  any_ = pods_.any();
}

EDL_INLINE void cluster::execute(create_pod const& c) {
  asio::post(requests_, [this, c] {
    pods::refusal why;
    try {
      auto const pod =
          client_.create(pod_path(""), member_pod(spec_, c.who, c.index, c.request, c.limit, self_));
      node_.post([this, c, uid = pod.at("metadata").at("uid").get<std::string>()] {
        pods_.created(c.who, uid);
        obey();
      });
      return;
    } catch (api_error const& e) {
      why = {e.code(), e.reason(), e.message()};
    } catch (std::exception const& e) {
      why = {0, {}, e.what()};
    }
    node_.post([this, c, why] {
      pods_.refused(c.who, why, std::chrono::steady_clock::now());
      obey();
    });
  });
}

EDL_INLINE void cluster::execute(delete_pod const& c) {
  asio::post(requests_, [this, c] {
    try {
      client_.remove(pod_path(c.name), {{"apiVersion", "v1"},
                                        {"kind", "DeleteOptions"},
                                        {"gracePeriodSeconds", c.grace.count()},
                                        {"preconditions", {{"uid", c.uid}}}});
      return;
    } catch (api_error const& e) {
      if (e.code() == 404 || e.code() == 409) return;  // gone, or another of that name
      log_.warning(e.what());
      if (e.code() < 500 && e.code() != 429) return;
    } catch (unreachable const&) {
    } catch (std::exception const& e) {
      return log_.warning(e.what());
    }
    node_.spawn([this, c] { return again(c); });
  });
}

EDL_INLINE asio::awaitable<void> cluster::again(delete_pod c) {
  asio::steady_timer timer(node_.executor(), std::chrono::seconds(1));
  co_await timer.async_wait(asio::use_awaitable);
  execute(c);
}

EDL_INLINE void cluster::execute(pod_note const& c) {
  log_.log(c.level, c.text);
  record(c);
}

EDL_INLINE void cluster::note(std::function<void()> what) {
  if (waiting_ > detail::most_notes) return;
  ++waiting_;
  asio::post(notes_, [this, what = std::move(what)] {
    try {
      what();
    } catch (std::exception const& e) {
      // The job does not depend on it, and a refusal is the same each time.
      if (!told_.exchange(true)) log_.warning(e.what());
    }
    --waiting_;
  });
}

EDL_INLINE void cluster::record(pod_note const& n) {
  auto const now = std::chrono::system_clock::now();
  note([this, n, now] {
    std::string const at = detail::stamp(now);
    client_.create(fmt::format("/api/v1/namespaces/{}/events", spec_.space),
                   {{"apiVersion", "v1"},
                    {"kind", "Event"},
                    {"metadata",
                     {{"name", fmt::format("{}.{:x}", self_.name, now.time_since_epoch().count())},
                      {"namespace", spec_.space},
                      {"labels", {{"elasticdl-job-name", spec_.name}}}}},
                    {"involvedObject",
                     {{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"name", self_.name},
                      {"namespace", spec_.space},
                      {"uid", self_.uid}}},
                    {"type", n.level >= severity::warning ? "Warning" : "Normal"},
                    {"reason", n.reason},
                    {"message", n.text.substr(0, 1000)},
                    {"firstTimestamp", at},
                    {"lastTimestamp", at},
                    {"count", 1},
                    {"source", {{"component", "edl-master"}}}});
  });
}

EDL_INLINE void cluster::show(std::string const& status, std::string const& line) {
  note([this, status, line] {
    client_.patch(
        pod_path(self_.name),
        {{"metadata", {{"labels", {{"status", status}}}, {"annotations", {{"elasticdl/progress", line}}}}}});
  });
  if (status != "Running") record({status == "Failed" ? severity::warning : severity::info, status, line});
}

EDL_INLINE void cluster::see_self(nlohmann::json const& pod) {
  auto const& metadata = field(pod, {"metadata"});
  if (text(field(metadata, {"uid"})) != self_.uid) return;
  if (!std::exchange(looked_at_self_, true)) raise_memory(pod);
  auto const& annotations = field(metadata, {"annotations"});
  std::string const workers = text(field(annotations, {"elasticdl/num-workers"}));
  std::string const servers = text(field(annotations, {"elasticdl/num-ps-pods"}));
  std::string size = fmt::format("workers={},servers={}", workers, servers);
  if ((workers.empty() && servers.empty()) || size == asked_size_) return;
  asked_size_ = size;
  node_.post([this, workers, servers, size] {
    auto const wanted = [](std::string const& n) { return number(n); };
    std::string refused;
    if ((!workers.empty() && !wanted(workers)) || (!servers.empty() && !wanted(servers)))
      refused = fmt::format("{}: expected numbers", size);
    else
      refused = to_.scale(wanted(workers), wanted(servers));
    std::string const answer = refused.empty() ? size : "refused: " + refused;
    record({refused.empty() ? severity::info : severity::warning, "Scaled", answer});
    note([this, answer] {
      client_.patch(pod_path(self_.name), {{"metadata", {{"annotations", {{"elasticdl/scaled", answer}}}}}});
    });
  });
}

EDL_INLINE void cluster::raise_memory(nlohmann::json const& pod) {
  auto const& container = first(field(pod, {"status", "containerStatuses"}));
  if (text(field(container, {"lastState", "terminated", "reason"})) != "OOMKilled") return;
  std::string const had =
      text(field(first(field(pod, {"spec", "containers"})), {"resources", "limits", "memory"}));
  resources const limit = limit_of(spec_.master.request, spec_.master.limit);
  auto const asked = limit.find("memory");
  if (had.empty() || asked == limit.end()) return;
  if (bytes_of(had) >= 8 * bytes_of(asked->second)) {
    log_.error(
        fmt::format("the master has used more memory than its limit of {}, eight times what was asked for: "
                    "give it more with --master_resource_limit",
                    had));
    return;
  }
  std::string const more = grown_quantity(had, 2);
  pod_note const what{severity::warning, "OutOfMemory",
                      fmt::format("the master used more memory than its limit of {}: it gets {}", had, more)};
  log_.log(what.level, what.text);
  record(what);
  note([this, more, name = text(field(container, {"name"}))] {
    nlohmann::json const memory{{"memory", more}};
    client_.patch(
        pod_path(self_.name + "/resize"),
        {{"spec",
          {{"containers", {{{"name", name}, {"resources", {{"limits", memory}, {"requests", memory}}}}}}}}},
        "strategic");
  });
}

}  // namespace edl::platform::kubernetes
