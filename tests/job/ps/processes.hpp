// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "edl/base/net/blocking.hpp"
#include "edl/base/net/listener.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/job/ps/server.hpp"
#include "job/ps/rules.hpp"

/// Servers as processes are, and who calls them.
namespace server_processes {

using namespace edl::ps;
using edl::net::call_error;
using edl::net::status;
using namespace std::chrono_literals;
namespace method = edl::wire::method;

inline momentum_rule const momentum;
inline asynchronous const at_once;

inline edl::parameter_layout const& layout() {
  static edl::parameter_layout const l{{{"w", {4}, 0}, {"mean", {2}, 4}}, 4, 2};
  return l;
}

/// Of one variable and two tables.
inline edl::parameter_layout const& tables_layout() {
  static edl::parameter_layout const l{
      .variables = {{"w", {1}, 0}}, .parameters = 1, .state = 0, .tables = {{"words", 2}, {"users", 1}}};
  return l;
}

inline std::shared_ptr<store> make_store(std::uint32_t) {
  return std::make_shared<store>(
      store_options{.layout = layout(), .elements = {0, 6}, .rule = momentum, .when = at_once});
}

/// A server's process.
struct process {
  explicit process(edl::parameter_layout const& model = layout(),
                   std::function<std::shared_ptr<store>(std::uint32_t)> make_one = make_store)
      : of(model), make(std::move(make_one)) {}

  edl::parameter_layout const& of;
  std::function<std::shared_ptr<store>(std::uint32_t)> make;
  edl::net::node node{{.job = "j",
                       .secret = edl::net::token("a secret of some length"),
                       .log = edl::logger(edl::severity::critical)}};
  std::atomic<int> cut_offs{0};
  std::atomic<std::uint64_t> planned{0};
  std::function<void(std::string const&)> failed = [](std::string const&) {};
  server it{node,
            {.name = "ps-x",
             .ranges = 2,
             .layout = of,
             .make = make,
             .configure =
                 [](store& s, std::string const&) {
                   s.configure([](std::size_t first, std::span<float> into) {
                     for (std::size_t i = 0; i < into.size(); ++i) into[i] = float(first + i);
                   });
                 },
             .plan = [this](std::uint64_t steps) { planned = steps; },
             .frozen = [](std::uint64_t, push_result const&) {},
             .cut_off = [this](std::uint64_t, std::uint32_t) { ++cut_offs; },
             .failed = [this](std::string const& why) { failed(why); },
             .patience = 20ms},
            edl::logger(edl::severity::critical)};
  edl::net::listener listener{node,
                              {edl::net::parse_address("tcp:127.0.0.1:0")},
                              [this](edl::net::request& r) { return it.handle(r); }};
};

/// Who calls servers: the master and a worker in one.
struct caller {
  edl::net::node node{{.job = "j",
                       .secret = edl::net::token("a secret of some length"),
                       .log = edl::logger(edl::severity::critical)}};

  template <class Reply, class Request>
  Reply ask(process& p, std::uint16_t m, Request const& request, std::vector<edl::bytes> payload = {},
            std::vector<std::span<std::byte>> into = {}) {
    edl::net::channel to(node, p.listener.addresses(), "ps");
    edl::net::outgoing what{.method = m,
                            .message = edl::wire::pack(request),
                            .payload = std::move(payload),
                            .into = std::move(into),
                            .timeout = 20s};
    return edl::wire::unpack<Reply>(edl::net::wait(to, std::move(what)).message, "ps");
  }

  edl::wire::PushReply push(process& p, std::uint64_t generation, std::uint32_t minibatch, float slope = 1) {
    edl::wire::PushRequest r;
    r.set_generation(generation);
    r.mutable_task()->set_index(3);
    r.set_minibatch(minibatch);
    r.set_minibatches(100);
    r.set_records(2);
    r.set_version(minibatch);
    std::vector<float> const values(6, slope);
    return ask<edl::wire::PushReply>(p, method::push, r, {std::as_bytes(std::span(values))});
  }

  std::vector<float> pull(process& p, std::uint64_t generation, bool check_memory = false) {
    edl::wire::PullRequest r;
    r.set_generation(generation);
    r.set_check_memory(check_memory);
    std::vector<float> values(6);
    ask<edl::wire::PullReply>(p, method::pull, r, {}, {std::as_writable_bytes(std::span(values))});
    return values;
  }
};

enum class part { primary, backup };

inline edl::wire::ConfigureRequest configuration(std::uint64_t generation, part as, bool keep,
                                                 process* backup = nullptr, process* from = nullptr,
                                                 bool holds = false) {
  edl::wire::ConfigureRequest r;
  r.set_generation(generation);
  r.set_keep(keep);
  auto& a = *r.add_assignments();
  a.set_primary(as == part::primary);
  if (backup)
    for (auto const& x : backup->listener.addresses()) a.add_backup(edl::net::to_string(x));
  if (from)
    for (auto const& x : from->listener.addresses()) a.add_from(edl::net::to_string(x));
  if (holds) r.add_holds(0);
  return r;
}

inline status code_of(auto&& work) {
  try {
    work();
  } catch (call_error const& e) {
    return e.code();
  }
  return status::ok;
}

}  // namespace server_processes
