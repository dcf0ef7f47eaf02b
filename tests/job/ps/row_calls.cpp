// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/row_calls.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "edl/compute/sparse/row_bytes.hpp"
#include "job/ps/processes.hpp"
#include "scratch_directory.hpp"

namespace row_calls_test {

using namespace server_processes;

namespace {

std::shared_ptr<store> make_tables(bool watched) {
  return std::make_shared<store>(
      store_options{.layout = tables_layout(),
                    .elements = {0, 1},
                    .slots = {0, 2048},
                    .tables = {{.width = 2, .seed = 1, .watches_memory = watched},
                               {.width = 1, .initial = edl::nn::constant{0}, .watches_memory = watched}},
                    .rule = momentum,
                    .when = at_once,
                    .watches_memory = watched});
}

struct tables_process : process {
  tables_process() : process(tables_layout(), [](std::uint32_t) { return make_tables(false); }) {}
};

using ids = std::vector<std::uint64_t>;

/// Ids of the first half of the hash slots.
ids own_ids(std::size_t n) {
  ids some;
  for (std::uint64_t id = 0; some.size() < n; ++id)
    if (edl::sparse::id_hash(id).slot() < 2048) some.push_back(id);
  return some;
}

edl::wire::PushReply push(caller& c, process& p, std::uint64_t generation, std::uint32_t minibatch,
                          ids const& words, ids const& users) {
  edl::wire::PushRequest r;
  r.set_generation(generation);
  r.set_minibatch(minibatch);
  r.set_minibatches(100);
  r.set_records(2);
  r.set_version(minibatch);
  r.add_rows(std::uint32_t(words.size())), r.add_rows(std::uint32_t(users.size()));
  std::vector<float> const dense(1, 1), of_words(words.size() * 2, 0.5f), of_users(users.size(), -1);
  return c.ask<edl::wire::PushReply>(
      p, method::push, r,
      {std::as_bytes(std::span(dense)), std::as_bytes(std::span(words)), std::as_bytes(std::span(of_words)),
       std::as_bytes(std::span(users)), std::as_bytes(std::span(of_users))});
}

std::vector<float> pull(caller& c, process& p, std::uint64_t generation, ids const& words, ids const& users) {
  edl::wire::PullRowsRequest r;
  r.set_generation(generation);
  r.add_rows(std::uint32_t(words.size())), r.add_rows(std::uint32_t(users.size()));
  std::vector<float> rows(words.size() * 2 + users.size());
  c.ask<edl::wire::PullRowsReply>(p, method::pull_rows, r,
                                  {std::as_bytes(std::span(words)), std::as_bytes(std::span(users))},
                                  {std::as_writable_bytes(std::span(rows))});
  return rows;
}

}  // namespace

TEST_CASE("a server whose row has changed by itself tells so as it writes it, and ends") {
  caller c;
  scratch const directory;
  std::shared_ptr<store> kept;
  std::vector<std::string> failures;
  process p(tables_layout(), [&](std::uint32_t) { return kept = make_tables(true); });
  p.failed = [&](std::string const& why) { failures.push_back(why); };
  c.ask<edl::wire::ConfigureReply>(p, method::configure, configuration(1, part::primary, false));
  ids const some = own_ids(3);
  push(c, p, 1, 0, some, some);
  edl::wire::CheckpointRequest r;
  r.set_generation(1);
  r.set_version(1);
  r.set_final(true);
  r.set_path(directory.path());
  auto const write = [&] {
    return code_of([&] { c.ask<edl::wire::CheckpointReply>(p, method::checkpoint, r); });
  };
  CHECK(write() == status::ok);
  kept->rows().table(0).for_each(edl::sparse::id_hash(some[1]).slot(),
                                 [](auto const&, edl::view<float> row) { const_cast<float&>(row[1]) += 1; });
  CHECK(write() != status::ok);
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].find(fmt::format("the row of id {} has changed without a step", some[1])) !=
        std::string::npos);
}

TEST_CASE("rows are pulled and pushed beside the variables, each push once") {
  caller c;
  tables_process p;
  c.ask<edl::wire::ConfigureReply>(p, method::configure, configuration(1, part::primary, false));
  ids const some = own_ids(50);
  auto const before = pull(c, p, 1, some, {some[3]});
  CHECK(push(c, p, 1, 0, some, {some[3], some[4]}).verdict() == edl::wire::PushReply::APPLIED);
  auto const after = pull(c, p, 1, some, {some[3]});
  for (std::size_t i = 0; i < 100; ++i) CHECK(after[i] < before[i]);
  CHECK(after[100] > 0);
  CHECK(push(c, p, 1, 0, some, {some[3]}).verdict() == edl::wire::PushReply::REPEAT);
  CHECK(pull(c, p, 1, some, {some[3]}) == after);
  CHECK(pull(c, p, 1, {}, {}).empty());
}

TEST_CASE("an acknowledged push of rows is on the backup, and a server that comes copies all of them") {
  caller c;
  tables_process backup, third;
  auto first = std::make_unique<tables_process>();
  c.ask<edl::wire::ConfigureReply>(backup, method::configure, configuration(1, part::backup, false));
  c.ask<edl::wire::ConfigureReply>(*first, method::configure,
                                   configuration(1, part::primary, false, &backup));
  // More than one reply holds: 100,000 rows of 24 and more bytes.
  ids const some = own_ids(100'000);
  for (std::uint32_t i = 0; i < 5; ++i) {
    ids const part(some.begin() + i * 20'000, some.begin() + (i + 1) * 20'000);
    CHECK(push(c, *first, 1, i, part, {some[i]}).verdict() == edl::wire::PushReply::APPLIED);
  }
  auto const before = pull(c, *first, 1, some, some);
  first.reset();
  c.ask<edl::wire::ConfigureReply>(backup, method::configure,
                                   configuration(2, part::primary, true, nullptr, nullptr, true));
  CHECK(pull(c, backup, 2, some, some) == before);
  CHECK(push(c, backup, 2, 4, some, some).verdict() == edl::wire::PushReply::REPEAT);

  c.ask<edl::wire::ConfigureReply>(backup, method::configure,
                                   configuration(3, part::primary, true, nullptr, nullptr, true));
  c.ask<edl::wire::ConfigureReply>(third, method::configure,
                                   configuration(3, part::primary, true, nullptr, &backup));
  CHECK(pull(c, third, 3, some, some) == before);
  // With the optimiser's slots: both go on alike.
  push(c, backup, 3, 5, some, some), push(c, third, 3, 5, some, some);
  CHECK(pull(c, third, 3, some, some) == pull(c, backup, 3, some, some));
  edl::wire::CountRowsRequest count;
  count.set_generation(3);
  auto const rows = c.ask<edl::wire::CountRowsReply>(third, method::count_rows, count);
  CHECK(rows.rows(0) == 100'000);
  CHECK(rows.rows(1) == 100'000);
}

TEST_CASE("sizes that do not fit are refused before memory is taken for them") {
  caller c;
  tables_process p;
  c.ask<edl::wire::ConfigureReply>(p, method::configure, configuration(1, part::primary, false));
  edl::wire::PushRequest r;
  r.set_generation(1);
  r.set_minibatches(1);
  std::vector<float> const one(1);
  auto const sent = [&] { c.ask<edl::wire::PushReply>(p, method::push, r, {std::as_bytes(std::span(one))}); };
  CHECK(code_of(sent) == status::invalid);  // of no table
  r.add_rows(~0u), r.add_rows(~0u);
  CHECK(code_of(sent) == status::invalid);
  edl::wire::PullRowsRequest q;
  q.set_generation(1);
  auto const pulled = [&] { c.ask<edl::wire::PullRowsReply>(p, method::pull_rows, q); };
  CHECK(code_of(pulled) == status::invalid);
  q.add_rows(~0u), q.add_rows(~0u);
  CHECK(code_of(pulled) == status::invalid);
  edl::wire::CopyRowsRequest copy;
  copy.set_generation(1);
  copy.set_table(2);
  CHECK(code_of([&] { c.ask<edl::wire::CopyRowsReply>(p, method::copy_rows, copy); }) == status::invalid);
  copy.set_generation(2);
  CHECK(code_of([&] { c.ask<edl::wire::CopyRowsReply>(p, method::copy_rows, copy); }) == status::not_ready);
}

TEST_CASE("rows of a version that is yet to come are answered when it has come, and only one's own") {
  caller c;
  tables_process p;
  c.ask<edl::wire::ConfigureReply>(p, method::configure, configuration(1, part::primary, false));
  ids const some = own_ids(3);
  auto const before = pull(c, p, 1, some, some);
  edl::wire::PullRowsRequest r;
  r.set_generation(1);
  r.set_version(1);
  r.add_rows(3), r.add_rows(0);
  std::vector<float> rows(6);
  edl::net::channel to(c.node, p.listener.addresses(), "ps");
  edl::net::outgoing what{.method = method::pull_rows, .message = edl::wire::pack(r), .timeout = 20s};
  what.payload.push_back(std::as_bytes(std::span(some)));
  what.into.push_back(std::as_writable_bytes(std::span(rows)));
  auto waits = edl::net::start(to, what);
  // A call behind it on the same connection is answered first: so it has come, and waits.
  edl::wire::CountRowsRequest count;
  count.set_generation(1);
  edl::net::wait(to, {.method = method::count_rows, .message = edl::wire::pack(count), .timeout = 20s});
  CHECK_FALSE(waits.ready());
  push(c, p, 1, 0, some, {});
  waits.get();
  CHECK(rows == pull(c, p, 1, some, {}));
  CHECK(rows[0] != before[0]);

  ids others;
  for (std::uint64_t id = 0; others.empty(); ++id)
    if (edl::sparse::id_hash(id).slot() >= 2048) others.push_back(id);
  CHECK(code_of([&] { pull(c, p, 1, others, {}); }) == status::invalid);
}

TEST_CASE("some hash slots are copied by themselves, and from one that offers its state to others alone") {
  caller c;
  tables_process p;
  c.ask<edl::wire::ConfigureReply>(p, method::configure, configuration(1, part::primary, false));
  push(c, p, 1, 0, own_ids(1000), {});
  edl::wire::CountRowsRequest count;
  count.set_generation(1);
  auto const counted = c.ask<edl::wire::CountRowsReply>(p, method::count_rows, count);
  CHECK(counted.first() == 0);
  CHECK(counted.last() == 2048);
  auto const store = make_tables(false);
  std::promise<void> offered;
  REQUIRE(p.node.post([&] { p.it.offers(2, 0, store), offered.set_value(); }));
  offered.get_future().get();
  CHECK(code_of([&] { pull(c, p, 2, own_ids(1), {}); }) == status::not_ready);
  edl::wire::CopyRowsRequest copy;
  copy.set_generation(2);
  copy.set_last(100);
  auto const empty = c.ask<edl::wire::CopyRowsReply>(p, method::copy_rows, copy);
  CHECK(empty.rows().empty());
  CHECK(empty.slot() == 100);
  std::promise<void> put;
  ids const some = own_ids(1000);
  std::vector<float> const weights(2000, 1);
  REQUIRE(p.node.post([&] { store->rows().set(0, some, weights), put.set_value(); }));
  put.get_future().get();
  auto const all = c.ask<edl::wire::CopyRowsReply>(p, method::copy_rows, copy);
  std::size_t rows = 0;
  edl::sparse::for_each_row(std::as_bytes(std::span(all.rows())), all.values(),
                            [&](auto const& header, auto) {
                              CHECK(edl::sparse::id_hash(header.id).slot() < 100);
                              ++rows;
                            });
  CHECK(rows == std::size_t(std::ranges::count_if(
                    some, [](std::uint64_t id) { return edl::sparse::id_hash(id).slot() < 100; })));
  CHECK(rows > 0);
  for (auto const& [slot, last] : {std::pair{200, 100}, std::pair{0, 3000}}) {
    copy.set_slot(std::uint32_t(slot)), copy.set_last(std::uint32_t(last));
    CHECK(code_of([&] { c.ask<edl::wire::CopyRowsReply>(p, method::copy_rows, copy); }) == status::invalid);
  }
}

}  // namespace row_calls_test
