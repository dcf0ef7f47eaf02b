// SPDX-License-Identifier: Apache-2.0
#include "answers.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <thread>

#include "edl/core/error.hpp"
#include "edl/core/text.hpp"

namespace edl::tool {

struct answers::implementation {
  httplib::Server server;
  int port = 0;
  std::thread thread;
};

answers::answers(std::string const& address, sources from) : self_(std::make_unique<implementation>()) {
  auto const colon = address.rfind(':');
  auto const wanted = colon == address.npos
                          ? std::nullopt
                          : number_from<std::uint16_t>(std::string_view(address).substr(colon + 1));
  if (!wanted)
    throw usage_error(fmt::format("--metrics_address={}: expected HOST:PORT, as 0.0.0.0:8080", address));
  std::string const host = address.substr(0, colon);
  httplib::Server& s = self_->server;
  s.new_task_queue = [] { return new httplib::ThreadPool(4); };
  s.set_payload_max_length(1024);
  s.set_read_timeout(5);
  s.set_write_timeout(5);
  s.set_keep_alive_max_count(100);
  auto const probe = [](std::function<std::string()> const& ask) {
    return [ask](httplib::Request const&, httplib::Response& to) {
      std::string const why = ask();
      to.status = why.empty() ? 200 : 503;
      to.set_content(why.empty() ? "ok\n" : why + "\n", "text/plain");
    };
  };
  s.Get("/healthz", probe(from.healthy));
  s.Get("/readyz", probe(from.ready));
  s.Get("/metrics", [ask = from.metrics](httplib::Request const&, httplib::Response& to) {
    to.set_content(ask(), "text/plain; version=0.0.4");
  });
  self_->port = *wanted == 0                            ? s.bind_to_any_port(host.c_str())
                : s.bind_to_port(host.c_str(), *wanted) ? *wanted
                                                        : -1;
  if (self_->port < 0)
    throw usage_error(fmt::format(
        "--metrics_address={}: cannot listen there: is the port taken? HOST:0 takes any", address));
  self_->thread = std::thread([this] { self_->server.listen_after_bind(); });
}

answers::~answers() {
  // A server that is stopped before it listens would go on for ever.
  while (!self_->server.is_running()) std::this_thread::yield();
  self_->server.stop();
  self_->thread.join();
}

std::uint16_t answers::port() const { return std::uint16_t(self_->port); }

}  // namespace edl::tool
