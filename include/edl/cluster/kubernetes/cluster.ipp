// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "edl/base/net/carry.hpp"
#include "edl/cluster/kubernetes/annotations.hpp"
#include "edl/cluster/kubernetes/cluster.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kubernetes/followed_list.hpp"
#include "edl/cluster/kubernetes/pod_template.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/quantity.hpp"
#include "edl/core/wall_time.hpp"

namespace edl::kubernetes {
namespace detail {

/// A master's requests are short, and the master retries them itself: none may block the thread for long.
inline client::options impatient() {
  return {
      .timeout = std::chrono::seconds(10), .retry_timeout = std::chrono::seconds(2), .agent = "edl-master"};
}

inline constexpr std::uint64_t most_notes = 1000;  // queued
inline constexpr int most_conflicts = 20;          // others write to the master's pod, too

/// The limit for the last requests if the API server is unavailable at the job's end.
inline constexpr std::chrono::seconds last_timeout{60};

/// The number of workers with which the job starts.
inline std::uint32_t first_size(job_spec const& spec) {
  return spec.initial_workers ? spec.initial_workers : spec.num_workers;
}

inline pods::options options_of(job_spec const& spec, std::vector<std::string> avoided) {
  pods::options o{.job = spec.name, .server = spec.server, .worker = spec.worker};
  // An older controller does not write the least size; its scheduler may wait for all workers.
  if (!spec.by.empty()) o.least_workers = first_size(spec);
  o.avoided = std::move(avoided);
  o.server_copies = spec.server_copies;
  for (role_spec* const of : {&o.server, &o.worker}) of->limit = limit_of(of->request, of->limit);
  if (!spec.server_template.empty()) o.server = role_of_template(spec.server_template);
  if (!spec.worker_template.empty()) o.worker = role_of_template(spec.worker_template);
  return o;
}

}  // namespace detail

EDL_INLINE cluster::cluster(net::node& on, access via, job_spec spec, owner self, edl::platform::observer& to,
                            logger log, retry_limits p, std::vector<std::string> avoided)
    : node_(on),
      client_(std::move(via), detail::impatient()),
      spec_(std::move(spec)),
      self_(std::move(self)),
      to_(to),
      log_(std::move(log)),
      retry_limits_(p),
      pods_(detail::options_of(spec_, std::move(avoided))),
      size_{detail::first_size(spec_), spec_.num_servers} {
  watcher_ = std::make_unique<watcher>(
      client_, pod_path(""), job_selector(spec_.name),
      watcher::callbacks{
          .listed = [this](nlohmann::json const& items,
                           std::string const& version) { listed(items, version); },
          .changed = [this](std::string const& type, nlohmann::json const& object) { changed(type, object); },
          .refused = [this](api_error const& why, std::chrono::milliseconds since,
                            bool before) { refused(why, since, before); }},
      log_, watcher::options{.longest_pause = p.pause});
  net::carry(
      node_, [this] { return tick(); },
      [this](std::string const& why) { to_.failed("cannot watch the cluster: " + why); });
}

EDL_INLINE cluster::~cluster() {
  watcher_.reset();
  requests_.join();
  notes_.join();
}

EDL_INLINE std::string cluster::pod_path(std::string const& name) const {
  return fmt::format("/api/v1/namespaces/{}/pods{}{}", spec_.space, name.empty() ? "" : "/", name);
}

EDL_INLINE void cluster::listed(nlohmann::json const& items, std::string const& version) {
  std::vector<pod_status> all;
  nlohmann::json const* self = nullptr;
  for (nlohmann::json const& one : items)
    if (auto s = read_pod(one)) {
      if (s->uid == self_.uid)
        self = &one;
      else if (s->who.role != role::master && s->owner == members_owner())
        all.push_back(std::move(*s));  // the rest: an earlier job of that name, being deleted
    }
  if (!self) return self_is_gone();
  auto const least = number(field(*self, {"metadata", "annotations", annotation::least}));
  node_.post([this, all = std::move(all), version, least, pool = pool_of(*self)] {
    if (least) pods_.least(*least);
    pods_.use_pool(pool);
    pods_.listed(all, clock::now(), version);
    run_commands();
  });
  see_self(*self);  // last, because requests concern the pods that run
}

EDL_INLINE void cluster::changed(std::string const& type, nlohmann::json const& object) {
  auto s = read_pod(object);
  if (!s) return;
  if (s->who.role == role::master) {
    if (type == "DELETED" && s->uid == self_.uid) return self_is_gone();
    return see_self(object);
  }
  if (s->owner != members_owner()) return;
  node_.post([this, gone = type == "DELETED", s = std::move(*s)] {
    auto const now = clock::now();
    gone ? pods_.deleted(s, now) : pods_.changed(s, now);
    run_commands();
  });
}

// The master's pod is gone: the members are deleted with it, or belong to the next master.
EDL_INLINE void cluster::self_is_gone() {
  node_.post([this] {
    pods_.close();
    run_commands();
    to_.superseded(
        fmt::format("pod {} (uid {}) is gone from namespace {}", self_.name, self_.uid, spec_.space));
  });
}

EDL_INLINE void cluster::start(process_id who, std::optional<std::uint32_t> instead_of) {
  pods_.start(who, instead_of, clock::now());
  run_commands();
}

EDL_INLINE void cluster::stop(process_id who, std::chrono::milliseconds grace) {
  pods_.stop(who, std::chrono::ceil<std::chrono::seconds>(grace));
  run_commands();
}

EDL_INLINE std::string cluster::avoid(process_id who, std::string const& why) {
  std::string node = pods_.avoid(who, why);
  run_commands();
  return node;
}

EDL_INLINE void cluster::evade(process_id who, std::string const& why) {
  pods_.evade(who, why, clock::now());
  run_commands();
}

EDL_INLINE void cluster::stop_all(std::chrono::milliseconds grace) {
  auto const within = [](std::chrono::milliseconds limit, auto const& done) {
    auto const until = clock::now() + limit;
    while (!done() && clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return done();
  };
  // Wait until the node's thread has processed everything that it has been sent so far.
  auto const closed = std::make_shared<std::atomic<bool>>(false);
  auto const none = [this, closed] { return *closed && !any_; };
  node_.post([this, closed] {
    pods_.close();
    run_commands();
    *closed = true;
  });
  // Pods that exit by themselves stay for inspection.
  if (within(grace, none)) return;
  node_.post([this, grace] {
    pods_.stop_all(std::chrono::ceil<std::chrono::seconds>(grace), to_.left());
    run_commands();
  });
  if (within(grace + std::chrono::seconds(1), none)) return;
  // If the master's pod stays, no garbage collection deletes the members, so wait for the deletions here.
  auto const answered = [this] { return !creating_ && deleting_ == 0; };
  if (answered()) return;
  log_.warning("the API server has not replied to all requests to delete pods; waiting for it");
  if (!within(detail::last_timeout, answered))
    log_.error(fmt::format("pods of job '{0}' may remain: `edl delete {0} -n {1}` removes them", spec_.name,
                           spec_.space));
}

EDL_INLINE std::string cluster::way_out() const {
  return fmt::format("; `edl rbac --apply -n {} --service_account={}` allows it", spec_.space,
                     spec_.service_account.empty() ? "default" : spec_.service_account);
}

EDL_INLINE void cluster::refused(std::string const& why) {
  to_.failed(fmt::format("the master of job '{}' has no permission to manage its pods: {}", spec_.name, why));
}

EDL_INLINE void cluster::refused(api_error const& why, std::chrono::milliseconds since, bool before) {
  bool const outage = before || retry_limits_.allowed_before;
  auto const limit = outage              ? retry_limits_.outage
                     : why.code() == 403 ? retry_limits_.right
                                         : retry_limits_.identity;
  if (outage && since.count() == 0)
    log_.warning(
        fmt::format("the API server refuses requests that it has allowed before: the job goes on without "
                    "news of its pods, and ends if that lasts for {:.3g} s",
                    double(limit.count()) / 1000));
  if (since < limit) return;
  std::string text = why.message() + (why.code() == 403 ? way_out() : "");
  if (outage) text = fmt::format("refused for {:.0f} s: {}", double(since.count()) / 1000, text);
  node_.post([this, text] { refused(text); });
}

EDL_INLINE asio::awaitable<void> cluster::tick() {
  asio::steady_timer timer(node_.executor());
  for (;;) {
    pods_.tick(clock::now());
    run_commands();
    timer.expires_after(std::chrono::milliseconds(250));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

EDL_INLINE void cluster::run_commands() {
  invariant(node_.on_thread(), "pods are managed on the node's thread");
  // A command may cause further ones (a process ended, so start its successor), which are executed in turn.
  for (auto commands = pods_.take_commands(); !commands.empty(); commands = pods_.take_commands())
    for (pod_command const& c : commands) std::visit([this](auto const& one) { execute(one); }, c);
  creating_ = pods_.creating();
  any_ = pods_.any();
}

EDL_INLINE void cluster::execute(create_pod const& c) {
  asio::post(requests_, [this, c] {
    pods::refusal why;
    try {
      nlohmann::json wanted = member_pod(spec_, c.who, c.index, c.request, c.limit, self_);
      avoid_nodes(wanted, c.avoid);
      put_in_pool(wanted, c.pool);
      auto const pod = client_.create(pod_path(""), wanted);
      node_.post([this, c, uid = pod.at("metadata").at("uid").get<std::string>(), version = version_of(pod)] {
        pods_.created(c.who, uid, version);
        run_commands();
      });
      return;
    } catch (api_error const& e) {
      why = {e.code(), e.reason(), e.message()};
      if (why.forbidden()) why.message += way_out();
    } catch (std::exception const& e) {
      why = {0, {}, e.what()};
    }
    node_.post([this, c, why] {
      pods_.refused(c.who, why, clock::now());
      run_commands();
    });
  });
}

EDL_INLINE void cluster::execute(delete_pod const& c) {
  ++deleting_;
  asio::post(requests_, [this, c] {
    bool repeated = false;
    struct finally {
      cluster& owner;
      bool const& repeated;
      ~finally() {
        if (repeated) return;
        int const left = --owner.deleting_;
        invariant(left >= 0, "no more deletions get replies than were requested");
      }
    } const answered{*this, repeated};
    try {
      client_.remove(pod_path(c.name), {{"apiVersion", "v1"},
                                        {"kind", "DeleteOptions"},
                                        {"gracePeriodSeconds", c.grace.count()},
                                        {"preconditions", {{"uid", c.uid}}}});
      return;
    } catch (api_error const& e) {
      if (e.code() == 404 || e.code() == 409) return;  // it is gone, or a different pod has its name
      log_.warning(e.what());
      if (e.code() < 500 && e.code() != 429) return;
    } catch (unreachable const&) {
    } catch (std::exception const& e) {
      return log_.warning(e.what());
    }
    repeated = true;
    node_.spawn([this, c] { return retry_deletion(c); });
  });
}

EDL_INLINE asio::awaitable<void> cluster::retry_deletion(delete_pod c) {
  asio::steady_timer timer(node_.executor(), std::chrono::seconds(1));
  co_await timer.async_wait(asio::use_awaitable);
  // In this order, so that the deletion counts as pending all the time.
  execute(c);
  int const left = --deleting_;
  invariant(left >= 0, "no more deletions get replies than were requested");
}

EDL_INLINE void cluster::execute(pod_note const& c) {
  log_.log(c.level, c.text);
  record(c);
}

EDL_INLINE void cluster::note(std::function<void()> what) {
  if (waiting_ <= detail::most_notes) note_surely(std::move(what));
}

EDL_INLINE void cluster::note_surely(std::function<void()> what) {
  ++waiting_;
  asio::post(notes_, [this, what = std::move(what)] {
    try {
      what();
    } catch (std::exception const& e) {
      // The job does not depend on notes, and every refusal would read the same.
      if (!announced_.exchange(true)) log_.warning(e.what());
    }
    std::uint64_t const before = waiting_--;
    invariant(before > 0, "no more notes are written than wait");
  });
}

EDL_INLINE void cluster::record(pod_note const& n) { record(n, self_); }

EDL_INLINE void cluster::record(pod_note const& n, owner const& of) {
  double const now = wall_seconds();
  note([this, n, now, of] {
    std::string const at = stamp_of(now);
    client_.create(fmt::format("/api/v1/namespaces/{}/events", spec_.space),
                   {{"apiVersion", "v1"},
                    {"kind", "Event"},
                    {"metadata",
                     {{"name", fmt::format("{}.{:x}", of.name, std::uint64_t(now * 1e9))},
                      {"namespace", spec_.space},
                      {"labels", {{"elasticdl-job-name", spec_.name}}}}},
                    {"involvedObject",
                     {{"apiVersion", of.api_version},
                      {"kind", of.kind},
                      {"name", of.name},
                      {"namespace", spec_.space},
                      {"uid", of.uid}}},
                    {"type", n.level >= severity::warning ? "Warning" : "Normal"},
                    {"reason", n.reason},
                    {"message", printable(n.text, 1000)},
                    {"firstTimestamp", at},
                    {"lastTimestamp", at},
                    {"count", 1},
                    {"source", {{"component", "edl-master"}}}});
  });
}

EDL_INLINE void cluster::mark_self(nlohmann::json metadata) {
  metadata["uid"] = self_.uid;  // excludes a successor with the same name
  note([this, patch = nlohmann::json{{"metadata", std::move(metadata)}}] {
    client_.patch(pod_path(self_.name), patch);
  });
}

EDL_INLINE void cluster::show(std::string const& status, std::string const& line) {
  mark_self({{"labels", {{"status", status}}}, {"annotations", {{annotation::progress, printable(line)}}}});
  if (status != "Running") record({status == "Failed" ? severity::warning : severity::info, status, line});
}

EDL_INLINE void cluster::waits(std::string const& what) {
  nlohmann::json value = printable(what);
  if (what.empty()) value = nullptr;  // removes the annotation
  mark_self({{"annotations", {{annotation::waits, value}}}});
}

EDL_INLINE void cluster::execute(pods_missing const& c) {
  nlohmann::json value = printable(c.why, 1000);
  if (c.why.empty()) value = nullptr;
  mark_self({{"annotations", {{annotation::missing, value}}}});
}

EDL_INLINE void cluster::execute(nodes_leaving const& c) {
  nlohmann::json value = fmt::format("{}", fmt::join(c.nodes, ","));
  if (c.nodes.empty()) value = nullptr;
  mark_self({{"annotations", {{annotation::leaving_nodes, value}}}});
}

EDL_INLINE void cluster::report(std::string const& json) {
  mark_self({{"annotations", {{annotation::report, json}}}});
}

EDL_INLINE void cluster::see_self(nlohmann::json const& pod) {
  auto const& metadata = field(pod, {"metadata"});
  if (text(field(metadata, {"uid"})) != self_.uid) return;
  if (!std::exchange(looked_at_self_, true)) {
    raise_memory(pod);
    // An earlier master may have changed it.
    if (auto const size = shown_size(pod)) node_.post([this, size] { size_ = *size; });
  }
  if (field(metadata, {"deletionTimestamp"}).is_string())
    node_.post([this] {
      pods_.close();  // new pods would be deleted with this one
      run_commands();
    });
  if (is_suspended(pod)) node_.post([this] { to_.suspend(); });
  node_.post([this, nodes = short_nodes_of(pod), pool = pool_of(pod)] {
    pods_.short_of(nodes);
    pods_.use_pool(pool);
  });
  requested_size const request = requested_size_of(pod);
  if (request.empty()) return;
  {
    // The request stays on the pod until it is answered, so it must not be handled twice.
    std::lock_guard const lock(request_mutex_);
    if (request_ == request) return;
    request_ = request;
  }
  node_.post([this, request] { scale(request); });
}

EDL_INLINE void cluster::scale(requested_size const& request) {
  auto const workers = number(request.workers), servers = number(request.servers);
  auto const leave = ids_of(request.leave);
  std::string refused;
  if (!leave)
    refused = fmt::format("leave={}: expected ids of workers, as 3,5", printable(request.leave, 50));
  else if ((!request.workers.empty() && !workers) || (!request.servers.empty() && !servers))
    refused = fmt::format("workers={},servers={}: expected numbers", printable(request.workers, 50),
                          printable(request.servers, 50));
  else
    refused = to_.scale(
        {workers, servers, workers ? *leave : std::vector<std::uint32_t>{}, printable(request.why, 500)});
  if (refused.empty()) size_ = {workers.value_or(size_.workers), servers.value_or(size_.servers)};
  bool const good = refused.empty();
  std::string const text =
      good ? fmt::format("workers={},servers={}", request.workers, request.servers) : "refused: " + refused;
  // A user waits for the reply, and a request whose reply is lost would be ignored for ever.
  note_surely([this, request, text, good, size = to_text(size_)] {
    struct finally {
      cluster& owner;
      requested_size const& request;
      ~finally() {
        std::lock_guard const lock(owner.request_mutex_);
        if (owner.request_ == request)
          owner.request_.reset();  // the next request, even an equal one, is a new one
      }
    } const forget{*this, request};
    if (!answer(request, text, size)) return;
    pod_note const event{good ? severity::info : severity::warning, "Scaled", text};
    record(event);
    if (!spec_.by.empty()) record(event, spec_.by);
  });
}

EDL_INLINE bool cluster::answer(requested_size const& request, std::string const& text,
                                std::string const& size) {
  for (int tries = 0;; ++tries) {
    auto const pod = client_.get(pod_path(self_.name));
    if (requested_size_of(pod) != request) return false;  // it has been answered or replaced
    try {
      // Patch only this version of the pod: a size request that arrives meanwhile is a new one.
      client_.patch(pod_path(self_.name),
                    {{"metadata",
                      {{"resourceVersion", kubernetes::text(field(pod, {"metadata", "resourceVersion"}))},
                       {"annotations",
                        {{annotation::scaled, text},
                         {annotation::size, size},
                         {annotation::num_workers, nullptr},
                         {annotation::leave, nullptr},
                         {annotation::why, nullptr},
                         {annotation::num_servers, nullptr}}}}}});
      return true;
    } catch (api_error const& e) {
      if (e.code() != 409 || tries == detail::most_conflicts) throw;
    }
  }
}

EDL_INLINE void cluster::raise_memory(nlohmann::json const& pod) {
  auto const& container = program_status(pod);
  if (text(field(container, {"lastState", "terminated", "reason"})) != "OOMKilled") return;
  std::string const had =
      text(field(first(field(pod, {"spec", "containers"})), {"resources", "limits", "memory"}));
  resources const limit = limit_of(spec_.master.request, spec_.master.limit);
  auto const requested = limit.find("memory");
  if (had.empty() || requested == limit.end()) return;
  if (bytes_of(had) >= 8 * bytes_of(requested->second)) {
    log_.error(
        fmt::format("the master has exceeded its memory limit of {}, eight times its request: "
                    "raise it with --master_resource_limit",
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

}  // namespace edl::kubernetes
