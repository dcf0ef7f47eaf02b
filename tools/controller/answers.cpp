// SPDX-License-Identifier: Apache-2.0
#include "answers.hpp"

#include <fmt/format.h>

#include "edl/base/http/server.hpp"
#include "edl/core/error.hpp"
#include "edl/core/metric_registry.hpp"
#include "edl/core/text.hpp"

namespace edl::tool {
namespace {

http::handler probe(std::function<std::string()> ask) {
  return http::at_once([ask = std::move(ask)](http::request const&) {
    std::string const why = ask();
    return http::response{
        .status = why.empty() ? 200 : 503, .type = "text/plain", .body = (why.empty() ? "ok" : why) + "\n"};
  });
}

http::server_options options_of(std::string const& address) {
  auto const colon = address.rfind(':');
  auto const port = colon == address.npos
                        ? std::nullopt
                        : number_from<std::uint16_t>(std::string_view(address).substr(colon + 1));
  if (!port)
    throw usage_error(fmt::format("--metrics_address={}: expected HOST:PORT, as 0.0.0.0:8080", address));
  return {.host = address.substr(0, colon), .port = *port, .bounds = {.body = 1024}};
}

}  // namespace

struct answers::implementation {
  implementation(std::string const& address, sources from)
      : server(node, options_of(address),
               std::vector<http::route>{
                   {"GET", "/healthz", probe(from.healthy)},
                   {"GET", "/readyz", probe(from.ready)},
                   {"GET", "/metrics", http::at_once([ask = from.metrics](http::request const& r) {
                      return http::metrics_response(r, ask());
                    })}}) {}
  net::node node{{.job = "edl-controller", .secret = net::token::random()}};
  http::server server;
};

answers::answers(std::string const& address, sources from) {
  try {
    self_ = std::make_unique<implementation>(address, std::move(from));
  } catch (usage_error const&) {
    throw;
  } catch (error const& e) {
    throw usage_error(fmt::format("--metrics_address={}: {}", address, e.what()));
  }
}

answers::~answers() = default;

std::uint16_t answers::port() const { return self_->server.port(); }

}  // namespace edl::tool
