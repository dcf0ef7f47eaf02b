// SPDX-License-Identifier: Apache-2.0
#include "edl/job/replica/row_shares.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>

#include "edl/compute/sparse/network_embeddings.hpp"
#include "edl/core/random.hpp"
#include "job/collective/members.hpp"
#include "job/ps/processes.hpp"

namespace row_shares_test {

using namespace server_processes;
using edl::replica::member_call, edl::replica::row_shares;
using members::connected, members::side_by_side;

namespace {

constexpr std::size_t rows_of_all = 3000;

std::vector<std::uint64_t> all_ids() {
  std::vector<std::uint64_t> ids;
  for (std::uint64_t i = 0; i < rows_of_all; ++i) ids.push_back(edl::mix(7, i));
  return ids;
}

constexpr auto inputs =
    edl::nn::inputs(edl::nn::input<"words">(edl::nn::served_embedding{.count = 16, .width = 2}),
                    edl::nn::input<"users">(edl::nn::served_embedding{.count = 16, .width = 1}));
auto const layout_of_rows = edl::sparse::embedding_layout_of(inputs);

/// A batch with every id, and some that have no row.
edl::data::batch with_all_ids() {
  auto const samples = (rows_of_all + 40) / 16;
  auto b = edl::data::make_batch(samples, std::size_t(inputs.input().size()), 1, 0, layout_of_rows.ids);
  b.rows = samples;
  for (std::size_t i = 0; i < b.ids.size(); ++i) b.ids[i] = edl::mix(7, i / 2 % (rows_of_all + 30));
  return b;
}

struct world;

/// A worker: its store behind a server, and its part in the worlds.
struct worker {
  explicit worker(int copies, std::size_t small = 0) : options{copies, small} {
    process.it.configured(1, 0, store);
  }

  struct {
    int copies;
    std::size_t small;
  } options;
  std::shared_ptr<edl::ps::store> store = std::make_shared<edl::ps::store>(
      store_options{.layout = tables_layout(),
                    .elements = {0, 1},
                    .slots = {0, 4096},
                    .tables = {{.width = 2, .seed = 1}, {.width = 1, .initial = edl::nn::constant{0}}},
                    .rule = momentum,
                    .when = at_once});
  server_processes::process process{tables_layout(), [](std::uint32_t) { return nullptr; }};
  world* in = nullptr;
  int calls_left = -1;  // before its world breaks; below 0: it does not
  row_shares shares{{.tables = tables_layout().tables,
                     .copies = options.copies,
                     .small = options.small,
                     .store = store,
                     .on_node = [this](std::function<void()> const& work) { on_node(work); },
                     .call = [this](std::vector<member_call> const& calls) { return call(calls); },
                     .name = [](std::size_t m) { return "worker-" + std::to_string(m); }}};

  void on_node(std::function<void()> const& work) {
    std::promise<void> done;
    REQUIRE(process.node.post([&] { work(), done.set_value(); }));
    done.get_future().get();
  }
  std::vector<std::string> call(std::vector<member_call> const& calls);

  /// Rows of all ids, trained so that no two are alike.
  void train() {
    auto const ids = all_ids();
    std::vector<float> words(ids.size() * 2), users(ids.size());
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = float(i % 97) / 8;
    for (std::size_t i = 0; i < users.size(); ++i) users[i] = float(i % 89) + 1;
    std::vector<float> sums(1, 1);
    std::vector<edl::contribution> const one{{{{0, 0}, 0, 1}, 1}};
    std::vector<std::vector<edl::sparse::row_gradients>> const rows{{{ids, words}, {ids, users}}};
    on_node([&] { store->step(one, sums, rows); });
  }
  /// All that it has but the rows.
  void copy_from(worker& other) {
    edl::ps::full_snapshot c;
    other.on_node([&] { c = other.store->full_snapshot(); });
    std::vector<float> values(c.variables.variables().begin(), c.variables.variables().end());
    values.insert(values.end(), c.slots.values().begin(), c.slots.values().end());
    on_node([&] { store->restore(c.segments, c.row_segments, values); });
    shares.forget();
  }
  std::uint64_t rows() const { return store->rows().table(0).size() + store->rows().table(1).size(); }
};

/// Workers that are a world together, by rank.
struct world {
  world(std::uint64_t number, std::vector<worker*> of) : number(number), members(std::move(of)) {}

  /// All enter and agree, the first `newcomers` of them without rows. How it ended for each: 1: well, 0: rows
  /// are lost, -1: the world broke.
  std::vector<int> agree(std::vector<worker*> const& newcomers = {},
                         std::vector<worker*> const& leaves = {}) {
    int const size = int(members.size());
    auto groups = connected(size);
    std::vector<int> results(members.size());
    side_by_side(size, [&](int r) {
      worker& w = *members[std::size_t(r)];
      w.in = this;
      w.shares.enter(size, r, wanted);
      if (std::ranges::find(newcomers, &w) != newcomers.end()) {
        w.copy_from(*members.front());
      } else {
        w.on_node([&] { w.process.it.offers(number, 0, w.store); });
      }
      auto& group = *groups[std::size_t(r)];
      try {
        bool const all = w.shares.gather(group, number);
        results[std::size_t(r)] = all;
        if (std::ranges::find(leaves, &w) != leaves.end()) throw edl::collective::broken("told to leave", r);
        if (all) w.shares.resolve(group);
        w.on_node([&] { w.process.it.configured(number, 0, w.store); });
      } catch (edl::collective::broken const&) {
        group.abort();
        results[std::size_t(r)] = -1;
      }
    });
    return results;
  }

  /// What all members pull at once.
  std::vector<std::vector<float>> pull() {
    auto const batch = with_all_ids();
    std::vector<std::vector<float>> all(members.size());
    side_by_side(int(members.size()), [&](int r) {
      edl::sparse::minibatch_rows rows(layout_of_rows);
      rows.begin(batch);
      members[std::size_t(r)]->shares.pull(rows, number, 1);
      for (std::size_t t = 0; t < rows.tables(); ++t)
        all[std::size_t(r)].insert(all[std::size_t(r)].end(), rows.rows(t).begin(), rows.rows(t).end());
    });
    return all;
  }

  std::uint64_t number;
  std::vector<worker*> members;
  int wanted = 0;
};

std::vector<std::string> worker::call(std::vector<member_call> const& calls) {
  std::vector<std::string> answers;
  for (member_call const& c : calls) {
    if (calls_left == 0) throw edl::collective::broken("told to break", int(c.member));
    if (calls_left > 0) --calls_left;
    edl::net::channel to(process.node, in->members[c.member]->process.listener.addresses(), "worker");
    for (;;) try {
        answers.push_back(edl::net::wait(to, c.request).message);
        break;
      } catch (call_error const& e) {
        if (e.code() != status::not_ready) throw;
      }
  }
  return answers;
}

}  // namespace

namespace {

std::vector<std::unique_ptr<worker>> workers(int n, int copies, std::size_t small = 0) {
  std::vector<std::unique_ptr<worker>> all;
  for (int i = 0; i < n; ++i) {
    all.push_back(std::make_unique<worker>(copies, small));
    all.back()->shares.enter(1, 0);
    all.back()->shares.prepare("");
    all.back()->train();
  }
  return all;
}

std::vector<worker*> some(std::vector<std::unique_ptr<worker>> const& all, std::vector<std::size_t> which) {
  std::vector<worker*> chosen;
  for (std::size_t i : which) chosen.push_back(all[i].get());
  return chosen;
}

/// Workers that share all rows.
std::vector<std::unique_ptr<worker>> divided(int n, int copies) {
  auto all = workers(n, copies);
  std::vector<worker*> members;
  for (auto const& w : all) members.push_back(w.get());
  CHECK(world(2, members).agree() == std::vector<int>(std::size_t(n), 1));
  for (auto const& w : all) {
    w->on_node([&] { w->shares.stepped(); });
    CHECK(w->shares.divide());
  }
  return all;
}

/// Every member pulls what a worker that has all rows has.
void check_rows(world& w) {
  auto const whole = workers(1, 0);
  world alone(w.number, some(whole, {0}));
  CHECK(alone.agree() == std::vector{1});
  auto const wanted = alone.pull().front();
  for (auto const& got : w.pull()) CHECK(got == wanted);
}

using all_well = std::vector<int>;

}  // namespace

TEST_CASE("members share the rows, so many have each, and pull what one that has all would") {
  auto const six = workers(6, 2);
  world first(2, some(six, {0, 1, 2, 3, 4, 5}));
  CHECK(first.agree() == all_well(6, 1));
  // Small, for nobody has said otherwise: a mebibyte is the least that is told between two worlds.
  check_rows(first);
  for (auto const& w : six) {
    w->on_node([&] { w->shares.stepped(); });
    CHECK(w->shares.divide());
    CHECK_FALSE(w->shares.divide());
    CHECK(w->shares.divided());
  }
  std::uint64_t all = 0;
  for (auto const& w : six) {
    CHECK(w->store->rows().slots().size() < 1500);
    all += w->rows();
  }
  CHECK(all == 2 * 2 * rows_of_all);
  check_rows(first);

  // Any that are left go on, as long as each group has one; and whoever comes gets its share.
  for (auto const& left : std::vector<std::vector<std::size_t>>{{0, 2, 4, 5}, {1, 3, 5}, {0, 1, 2, 3, 4}}) {
    auto const again = divided(6, 2);
    auto const newcomers = workers(2, 2);
    auto chosen = some(again, left);
    auto const came = some(newcomers, {0, 1});
    chosen.insert(chosen.end(), came.begin(), came.end());
    world after(3, chosen);
    CHECK(after.agree(came) == all_well(chosen.size(), 1));
    check_rows(after);
    std::uint64_t n = 0;
    for (worker const* w : chosen) n += w->rows();
    CHECK(n < 2 * rows_of_all * chosen.size());
    CHECK(n >= 2 * 2 * rows_of_all);
  }
}

TEST_CASE("rows that nobody has any more are lost, and all members are told") {
  auto const four = divided(4, 1);
  world second(3, some(four, {0, 1, 3}));
  CHECK(second.agree() == all_well(3, 0));
}

TEST_CASE("a world that breaks while rows move loses none, wherever each member was") {
  int broken = 0;
  auto const goes_on = [&](std::vector<worker*> const& all, std::vector<worker*> const& came, worker& breaks,
                           int calls, std::uint64_t copies) {
    breaks.calls_left = calls;
    auto const results = world(3, all).agree(came);
    breaks.calls_left = -1;
    broken += std::ranges::count(results, -1) > 0;
    world after(4, all);
    CHECK(after.agree() == all_well(all.size(), 1));
    check_rows(after);
    std::uint64_t n = 0;
    for (worker const* w : all) n += w->rows();
    CHECK(n >= copies * 2 * rows_of_all);
    CHECK(n < (copies + 1) * 2 * rows_of_all);
  };
  for (int calls = 0; calls < 4; ++calls) {
    CAPTURE(calls);
    {
      auto const four = divided(4, 1);
      auto const newcomers = workers(2, 1);
      auto const came = some(newcomers, {0, 1});
      goes_on({four[3].get(), came[0], four[1].get(), four[0].get(), came[1], four[2].get()}, came,
              *came[std::size_t(calls % 2)], calls, 1);
    }
    for (std::size_t const breaks : {1u, 5u}) {
      CAPTURE(breaks);
      auto const six = divided(6, 2);
      goes_on(some(six, {1, 3, 4, 5, 0}), {}, *six[breaks], calls, 2);
    }
  }
  CHECK(broken > 4);
}

TEST_CASE("a world that breaks when some have given rows up, and others have not heard of it, loses none") {
  for (std::size_t const leaves : {0u, 2u, 4u}) {
    CAPTURE(leaves);
    auto const four = divided(4, 1);
    auto const newcomers = workers(2, 1);
    auto const came = some(newcomers, {0, 1});
    auto all = some(four, {0, 1, 2, 3});
    all.insert(all.end(), came.begin(), came.end());
    auto const results = world(3, all).agree(came, {all[leaves]});
    CHECK(results[leaves] == -1);
    world after(4, all);
    CHECK(after.agree() == all_well(6, 1));
    check_rows(after);
  }
}

TEST_CASE("the others of a world do not take in the rows of one that is missing, and its place is filled") {
  auto const four = divided(4, 2);
  auto const left = some(four, {0, 1, 3});
  world three(3, left);
  three.wanted = 4;
  CHECK(three.agree() == all_well(3, 1));
  for (worker const* w : left) CHECK(w->store->rows().slots().size() == 2048);
  check_rows(three);
  auto const newcomers = workers(1, 2);
  auto all = left;
  all.push_back(newcomers[0].get());
  world again(4, all);
  again.wanted = 4;
  CHECK(again.agree(some(newcomers, {0})) == all_well(4, 1));
  CHECK(newcomers[0]->store->rows().slots() == four[2]->store->rows().slots());
  check_rows(again);
}

TEST_CASE("workers with other options are told so, all of them") {
  auto const one = workers(1, 2), other = workers(1, 3);
  std::vector<worker*> const both{one[0].get(), other[0].get()};
  auto groups = connected(2);
  side_by_side(2, [&](int r) {
    worker& w = *both[std::size_t(r)];
    w.shares.enter(2, r);
    CHECK_THROWS_WITH_AS(w.shares.gather(*groups[std::size_t(r)], 2), doctest::Contains("--table_copies="),
                         edl::error);
  });
}

TEST_CASE("tables that are small are with every member, and a new world's members have all of them") {
  auto const three = workers(3, 1, std::size_t{1} << 20);
  world first(2, some(three, {0, 1}));
  CHECK(first.agree() == all_well(2, 1));
  for (auto const& w : some(three, {0, 1})) {
    w->on_node([&] { w->shares.stepped(); });
    CHECK_FALSE(w->shares.divide());
  }
  world second(3, some(three, {0, 1, 2}));
  CHECK(second.agree(some(three, {2})) == all_well(3, 1));
  for (auto const& w : three) CHECK(w->rows() == 2 * rows_of_all);
  check_rows(second);
}

}  // namespace row_shares_test
