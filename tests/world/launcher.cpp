// SPDX-License-Identifier: Apache-2.0
// The launcher of a job in the world: `platform::launcher` without fork and exec, and who asks for another
// size.
#include <fmt/format.h>

#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cstdlib>
#include <map>
#include <thread>

#include "edl/base/net/blocking.hpp"
#include "edl/base/net/channel.hpp"
#include "edl/base/net/listener.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/base/wire/process_message.hpp"
#include "world/subject.hpp"

namespace simulation {
namespace {

using namespace std::chrono_literals;

std::string variable(char const* name) {
  char const* const value = std::getenv(name);
  return value ? value : "";
}

std::string role_name(edl::role r) { return r == edl::role::server ? "ps" : "worker"; }

edl::process_id id_of(std::string const& role, std::uint32_t id) {
  return {role == "ps" ? edl::role::server : edl::role::worker, id};
}

edl::net::node_options options() {
  bool const tls = variable("WORLD_TLS") == "1";
  return {.job = "world",
          .secret = edl::net::token("0123456789abcdef0123456789abcdef"),
          .security = tls ? edl::net::transport_security::tls : edl::net::transport_security::none};
}

class launcher_process {
 public:
  launcher_process()
      : node_(options()),
        listener_(
            node_,
            {edl::net::parse_address(
                fmt::format("tcp:{}:{}", world::address_of("launcher"), variable("LAUNCHER_PORT")))},
            [this](edl::net::request& r) { return handle(r); },
            edl::net::listener_options{.credential = edl::net::token(variable("EDL_LAUNCHER_TOKEN"))}) {}

 private:
  asio::awaitable<void> handle(edl::net::request& r) {
    namespace wire = edl::wire;
    if (r.method() == wire::method::process_events) co_return co_await tell(r);
    if (r.method() == wire::method::start_process) {
      auto const m = wire::unpack<wire::StartProcess>(r.message(), r.peer());
      if (m.order() == 0 || m.order() != last_start_) {
        last_start_ = m.order();
        std::map<std::string, std::string> variables;
        for (auto const& v : m.variables()) variables[v.name()] = v.value();
        edl::process_id const who = wire::from_message(m.who());
        newest_[who] = m.order();
        the_job()->order_start(role_name(who.role), who.id, std::move(variables), m.order());
      }
    } else {
      auto const m = wire::unpack<wire::StopProcess>(r.message(), r.peer());
      std::chrono::milliseconds const grace(m.grace_ms());
      if (m.has_who()) {
        edl::process_id const who = wire::from_message(m.who());
        the_job()->order_stop(role_name(who.role), who.id, grace);
      } else {
        for (auto const& [role, id] : the_job()->running()) the_job()->order_stop(role, id, grace);
        while (!the_job()->running().empty()) co_await pause();
      }
    }
    std::string const answer = wire::pack(wire::Empty{});
    co_await r.reply(answer);
  }

  asio::awaitable<void> tell(edl::net::request& r) {
    namespace wire = edl::wire;
    auto const m = wire::unpack<wire::ProcessEventsRequest>(r.message(), r.peer());
    auto const& endings = the_job()->endings();
    auto const until = std::chrono::steady_clock::now() + 5s;
    while (m.wait() && endings.size() <= m.after() && std::chrono::steady_clock::now() < until)
      co_await pause();
    wire::ProcessEventsReply reply;
    for (std::uint64_t i = m.after(); i < endings.size(); ++i) {
      auto const& e = endings[i];
      auto& out = *reply.add_endings();
      edl::process_id const who = id_of(e.role, e.id);
      wire::to_message(who, *out.mutable_who());
      out.set_code(std::uint32_t(e.code));
      out.set_signal(std::uint32_t(e.signal));
      out.set_asked(e.stop_requested);
      out.set_order(e.order);
      out.set_superseded(newest_[who] != e.order);
    }
    for (auto const& [role, id] : the_job()->running())
      wire::to_message(id_of(role, id), *reply.add_running());
    std::string const answer = wire::pack(reply);
    co_await r.reply(answer);
  }

  asio::awaitable<void> pause() {
    asio::steady_timer timer(node_.executor(), 20ms);
    co_await timer.async_wait(asio::use_awaitable);
  }

  edl::net::node node_;
  edl::net::listener listener_;
  std::map<edl::process_id, std::uint64_t> newest_;
  std::uint64_t last_start_ = 0;
};

}  // namespace

int launcher_main(int, char**) {
  launcher_process const one;
  for (;;) std::this_thread::sleep_for(1h);
}

int scale_main(int, char**) {
  namespace wire = edl::wire;
  edl::net::node node(options());
  auto where = edl::net::parse_address(variable("SCALE_MASTER"));
  where.peer = "master";
  edl::net::channel master(node, {where}, "the master");
  wire::ScaleRequest request;
  auto const wanted = std::uint32_t(std::atoi(variable("SCALE_TO").c_str()));
  variable("SCALE_WHAT") == "workers" ? request.set_workers(wanted) : request.set_servers(wanted);
  try {
    edl::net::wait(
        master,
        {.method = wire::method::scale, .message = wire::pack(request), .timeout = 10s, .idempotent = true});
  } catch (edl::net::call_error const& e) {
    fmt::print(stderr, "the job is not resized: {}\n", e.what());
    return 1;
  }
  return 0;
}

}  // namespace simulation
