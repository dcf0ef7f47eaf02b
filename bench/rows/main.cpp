// SPDX-License-Identifier: Apache-2.0
// Rows of an embedding table through a socket: one parameter server and one worker, each with a thread of its
// own, as a job has them. Rows per second of pulls and of pushes, beside what the socket carries of as many
// bytes.
#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "edl/base/net/listener.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/cli/program.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/error.hpp"
#include "edl/job/ps/policy.hpp"
#include "edl/job/ps/server.hpp"
#include "edl/job/worker/remote.hpp"

namespace {

using clock_type = std::chrono::steady_clock;
using edl::cli::flag;

constexpr int width = 16;

std::vector<flag> flags() {
  using enum flag::value_type;
  return {{.name = "rows", .fallback = "1000000", .help = "of the table", .type = whole, .least = 1},
          {.name = "ids",
           .fallback = "13312",
           .help = "of a minibatch, all different",
           .type = whole,
           .least = 1},
          {.name = "seconds", .fallback = "5", .help = "of each measurement", .type = whole, .least = 1},
          {.name = "transport", .fallback = "unix", .help = "between them", .choices = {"unix", "tcp"}}};
}

edl::net::node_options options() {
  return {.job = "bench",
          .secret = edl::net::token("a secret of some length"),
          .log = edl::logger(edl::severity::critical)};
}

/// Calls `once` until the time is over. Calls per second.
double rate(double seconds, std::function<void()> const& once) {
  once();
  auto const begin = clock_type::now();
  std::uint64_t calls = 0;
  for (;; ++calls) {
    std::chrono::duration<double> const passed = clock_type::now() - begin;
    if (passed.count() >= seconds) return double(calls) / passed.count();
    once();
  }
}

int run(edl::cli::command_line const& l) {
  auto const all = std::uint64_t(l.number("rows")), some = std::uint64_t(l.number("ids"));
  auto const seconds = double(l.number("seconds"));
  if (some > all) throw edl::usage_error("--ids: there are not as many --rows");
  edl::parameter_layout const layout{
      .variables = {{"w", {16}, 0}}, .parameters = 16, .state = 0, .tables = {{"ids", width}}};
  edl::rule<edl::adagrad> const rule{edl::adagrad{.learning_rate = 0.01f}};
  edl::ps::asynchronous const when;
  auto const store = std::make_shared<edl::ps::store>(edl::ps::store_options{.layout = layout,
                                                                             .elements = {0, 16},
                                                                             .slots = {0, 4096},
                                                                             .tables = {{.width = width}},
                                                                             .rule = rule,
                                                                             .when = when});
  edl::net::node at_server(options()), at_worker(options());
  edl::ps::server server(at_server,
                         {.name = "ps-0",
                          .ranges = 1,
                          .layout = layout,
                          .make = [&](std::uint32_t) { return store; },
                          .configure = [](edl::ps::store&, std::string const&) {},
                          .frozen = [](std::uint64_t, edl::ps::push_result const&) {},
                          .cut_off = [](std::uint64_t, std::uint32_t) {}},
                         edl::logger(edl::severity::critical));
  std::string const place =
      l.text("transport") == "tcp" ? "tcp:127.0.0.1:0" : fmt::format("unix:@bench-rows-{}", ::getpid());
  server.configured(1, 0, store);
  edl::net::listener const listener(at_server, {edl::net::parse_address(place)},
                                    [&](edl::net::request& r) { return server.handle(r); });
  // The master has but to say where the server is.
  edl::net::listener const master(at_server, {edl::net::parse_address("tcp:127.0.0.1:0")},
                                  [&](edl::net::request& r) -> asio::awaitable<void> {
                                    edl::wire::Cluster cluster;
                                    cluster.set_generation(1);
                                    cluster.set_ready(true);
                                    auto& range = *cluster.add_ranges();
                                    for (auto const& a : listener.addresses())
                                      range.add_addresses(edl::net::to_string(a));
                                    std::string const answer = edl::wire::pack(cluster);
                                    co_await r.reply(answer);
                                  });
  edl::net::channel to_master(at_worker, master.addresses(), "the master");
  edl::worker::remote_parameters parameters(at_worker, to_master, {}, layout);

  edl::sparse::embedding_layout const embeddings{.tables = layout.tables,
                                                 .initials = {edl::nn::uniform{}},
                                                 .inputs = {{.table = 0, .ids = std::size_t(some)}},
                                                 .ids = std::size_t(some)};
  std::mt19937_64 random(1);
  std::vector<edl::data::batch> batches;
  for (int i = 0; i < 16; ++i) {
    auto b = edl::data::make_batch(1, std::size_t(some) * width, 1, 0, std::size_t(some));
    b.rows = 1;
    std::uint64_t const first = random() % all;
    for (std::uint64_t k = 0; k < some; ++k) b.ids[k] = edl::mix(7, (first + k) % all);
    batches.push_back(std::move(b));
  }
  std::vector<float> const slopes(std::size_t(some) * width, 0.01f), dense(16);
  std::vector<std::uint64_t> ids;
  for (std::uint64_t k = 0; k < all; ++k) ids.push_back(edl::mix(7, k));
  std::uint32_t task = 0;
  auto const contribution = [&] { return edl::contribution{{{0, task++}, 0, 1}, std::uint32_t(some)}; };
  for (std::size_t first = 0; first < ids.size(); first += 10'000) {
    auto const part =
        edl::view<std::uint64_t>(ids).subspan(first, std::min<std::size_t>(10'000, ids.size() - first));
    std::vector<float> const none(part.size() * width);
    edl::sparse::row_gradients const rows{part, none};
    parameters.push(contribution(), 0, dense, {}, {&rows, 1});
  }
  edl::sparse::minibatch_rows rows(embeddings);
  std::size_t turn = 0;
  double const pulls = rate(seconds, [&] {
    rows.begin(batches[turn++ % batches.size()]);
    parameters.pull_rows(rows);
  });
  double const pushes = rate(seconds, [&] {
    edl::sparse::row_gradients const sums{rows.ids(0), slopes};
    parameters.push(contribution(), 0, dense, {}, {&sums, 1});
  });
  double const steps = rate(seconds, [&] {
    auto& b = batches[turn++ % batches.size()];
    rows.begin(b);
    parameters.pull_rows(rows);
    rows.fill(b);
    parameters.push(contribution(), 0, dense, {}, rows.sum(b, slopes));
  });
  fmt::print("{} rows of {} values, {} ids a minibatch, {}\n\n", all, width, some, l.text("transport"));
  fmt::print("| | calls/s | million rows/s | GB/s |\n|---|---|---|---|\n");
  auto const line = [&](char const* name, double calls, double bytes) {
    fmt::print("| {} | {:.0f} | {:.2f} | {:.2f} |\n", name, calls, calls * double(some) / 1e6,
               calls * double(some) * bytes / 1e9);
  };
  line("pull", pulls, 8 + 4 * width);
  line("push", pushes, 8 + 4 * width);
  line("pull, then push", steps, 2 * (8 + 4 * width));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return edl::cli::run_program({.command = "bench-rows", .flags = flags()},
                               "Rows of an embedding table between a parameter server and a worker.",
                               {argv + 1, argv + argc}, run);
}
