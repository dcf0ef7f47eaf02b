// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <optional>

#include "edl/compute/optim/optimizers.hpp"
#include "edl/compute/sparse/row_bytes.hpp"
#include "edl/core/error.hpp"
#include "job/ps/small_store.hpp"

namespace store_rows_test {

using namespace small_store;

namespace {

edl::parameter_layout const layout = with_table();
synchronous const pairs(2);
edl::sparse::table_options const from_zero{.width = 1, .initial = edl::nn::constant{0}};

store make(policy const& when = at_once, edl::element_range slots = {0, 4096},
           edl::element_range elements = {0, 6}) {
  return store({.layout = layout,
                .elements = elements,
                .slots = slots,
                .tables = {from_zero},
                .rule = adding,
                .when = when});
}

using ids = std::vector<std::uint64_t>;

/// A push of rows alone; the variables get zeros.
push_result push(store& s, edl::contribution const& c, ids const& of, float slope,
                 std::uint64_t computed_on = 0) {
  std::vector<float> const slopes(of.size(), slope), zeros(6);
  edl::sparse::row_gradients const rows{of, slopes};
  return s.push(c, computed_on, std::span(zeros).first(s.parameters()), std::span(zeros).first(s.state()),
                {&rows, 1});
}

float row(store const& s, std::uint64_t id) {
  float v = 0;
  s.rows().pull(0, std::span(&id, 1), {&v, 1});
  return v;
}

/// An id of the first, or of the second half of the hash slots.
std::uint64_t id_of(bool second, int number = 0) {
  for (std::uint64_t id = 0;; ++id)
    if ((edl::sparse::id_hash(id).slot() >= 2048) == second && number-- == 0) return id;
}

edl::contribution of(std::uint32_t task, std::uint32_t index = 0, std::uint32_t count = 1) {
  return {batch(task, index, count), 4};
}

}  // namespace

TEST_CASE("rows are trained with the minibatch, once, however often it is pushed") {
  store s = make();
  CHECK(push(s, of(0), {1, 2}, 1).version == 1);
  CHECK(push(s, of(0), {1, 2}, 1).outcome == push_outcome::repeat);
  push(s, of(1), {2}, 2);
  CHECK(row(s, 1) == 1);
  CHECK(row(s, 2) == 3);
  CHECK(row(s, 3) == 0);
}

TEST_CASE("rows of a table have the rate that is the table's") {
  for (policy const* when : std::vector<policy const*>{&at_once, &pairs}) {
    store s({.layout = layout,
             .elements = {0, 6},
             .slots = {0, 4096},
             .tables = {from_zero},
             .rule = adding,
             .when = *when,
             .rates = edl::rates_of_parts(layout, {}, "words=0.25")});
    push(s, of(0), {1}, 2);
    push(s, of(1), {1}, 2);
    CHECK(row(s, 1) == (when == &pairs ? 0.5f : 1.0f));
  }
}

TEST_CASE("rows of a table that is excluded from weight decay do not shrink") {
  for (bool const excluded : {false, true}) {
    edl::rule const rule(edl::sgd{.weight_decay = 0.5f, .exclude_from_weight_decay = excluded ? "words" : ""},
                         edl::constant_rate{0.5f}, layout);
    store s({.layout = layout,
             .elements = {0, 6},
             .slots = {0, 4096},
             .tables = {from_zero},
             .rule = rule,
             .when = at_once});
    push(s, of(0), {1}, 2);
    push(s, of(1), {1}, 0);
    CHECK(row(s, 1) == (excluded ? -1.0f : -0.75f));
  }
}

TEST_CASE("minibatches that are a step together give rows their mean, over those without the row, too") {
  store s = make(pairs);
  CHECK(push(s, of(0), {1, 2}, 1).version == 0);
  CHECK(row(s, 1) == 0);
  CHECK(push(s, of(1), {2, 3}, 5).version == 1);
  CHECK(row(s, 1) == 0.5f);
  CHECK(row(s, 2) == 3);
  CHECK(row(s, 3) == 2.5f);
  push(s, of(2), {1}, 8, 1);
  s.drop_waiting();
  push(s, of(3), {1}, 2, 1);
  CHECK(s.flush().version == 2);
  CHECK(row(s, 1) == 2.5f);
  CHECK(row(s, 2) == 3);
}

TEST_CASE("what is no update of these tables changes nothing") {
  store s = make(at_once, {0, 2048});
  auto const zeros = std::vector<float>(6);
  auto const bad = [&](std::vector<edl::sparse::row_gradients> const& rows, char const* why) {
    CHECK_THROWS_WITH_AS(s.push(of(0), 0, std::span(zeros).first(4), std::span(zeros).first(2), rows),
                         doctest::Contains(why), edl::error);
  };
  ids const own{id_of(false)}, other{id_of(true)};
  std::vector<float> const slopes(2, 1);
  bad({}, "rows of 0 tables, but this server keeps 1");
  bad({{own, slopes}}, "2 gradients for 1 rows of table 0");
  bad({{other, std::span(slopes).first(1)}}, "belongs to another server");
  CHECK(s.version() == 0);
  CHECK(push(s, of(0), own, 1).version == 1);
}

TEST_CASE("a snapshot keeps its rows while training goes on, and a checkpoint of it brings them back") {
  scratch const dir;
  store s = make();
  push(s, of(0), {1, 2, 3}, 1);
  full_snapshot const then = s.full_snapshot();
  push(s, of(1), {1, 4}, 10);
  std::string const path = save(dir, layout, 1, {then});
  store back = make();
  back.restore(path);
  CHECK(back.version() == 1);
  CHECK(row(back, 1) == 1);
  CHECK(row(back, 4) == 0);
  CHECK(push(back, of(0), {1, 2, 3}, 1).outcome == push_outcome::repeat);
  push(back, of(1), {1, 4}, 10);
  CHECK(row(back, 1) == 11);
  CHECK(row(back, 4) == 10);
  store fresh = make();
  fresh.restore(path, history::forgotten);
  CHECK(push(fresh, of(0), {1}, 1).version == 2);
  CHECK(row(fresh, 1) == 2);
}

TEST_CASE("rows of servers that had not applied the same are made equal, each minibatch once for each row") {
  scratch const dir;
  ids const low{id_of(false), id_of(false, 1)}, high{id_of(true), id_of(true, 1)};
  store first = make(at_once, {0, 2048}, {0, 4}), second = make(at_once, {2048, 4096}, {4, 6});
  push(first, of(0), low, 1), push(second, of(0), high, 1);
  push(first, of(1), low, 2);  // the second was cut before this came
  std::string const path = save(dir, layout, 1, {first.full_snapshot(), second.full_snapshot()});
  store all = make();
  all.restore(path);
  CHECK(all.version() == 1);
  ids const both{low[0], high[0]};
  CHECK(push(all, of(1), both, 2).version == 2);
  CHECK(row(all, low[0]) == 3);
  CHECK(row(all, high[0]) == 3);
  CHECK(row(all, high[1]) == 1);
  CHECK(push(all, of(1), both, 2).outcome == push_outcome::repeat);
  push(all, of(2), both, 1);
  CHECK(row(all, low[0]) == 4);
  CHECK(row(all, high[0]) == 4);
  // Half of them on a server of its own.
  store part = make(at_once, {1024, 3072}, {2, 6});
  part.restore(path);
  for (std::uint64_t id = 0; id < 100; ++id) {
    auto const slot = edl::sparse::id_hash(id).slot();
    bool const pushed = std::ranges::count(low, id) + std::ranges::count(high, id) > 0;
    if (slot >= 1024 && slot < 3072 && pushed) CHECK(row(part, id) == (slot < 2048 ? 3 : 1));
  }
}

TEST_CASE("rows that somebody exported begin with what the optimiser begins with") {
  store s = make(at_once, {0, 2048});
  ids const both{id_of(false), id_of(true)};
  std::vector<float> const weights{5, 6};
  s.rows().set(0, both, weights);
  CHECK(row(s, both[0]) == 5);
  CHECK(row(s, both[1]) == 0);  // another server's
}

TEST_CASE("rows that no step needs any more go: each hash slot is looked through in its turn") {
  auto options = from_zero;
  options.policy.unused_steps = 5000;
  auto const with_policy = [&] {
    return store({.layout = layout,
                  .elements = {0, 6},
                  .slots = {0, 4096},
                  .tables = {options},
                  .rule = adding,
                  .when = at_once});
  };
  store a = with_policy(), b = with_policy();
  for (std::uint32_t i = 0; i < 9200; ++i)
    for (store* s : {&a, &b}) push(*s, of(i), {i % 100 == 0 ? 1u : 1'000'000u + i}, 1, i);
  CHECK(row(a, 1) == 92);
  // Rows of the last 5,000 steps are there, and of those before at most what one round of 4,096 steps leaves.
  CHECK(a.rows().table(0).size() > 4900);
  CHECK(a.rows().table(0).size() < 9097 - 50);
  CHECK(row(a, 1'000'001) == 0);
  CHECK(a.rows().table(0).size() == b.rows().table(0).size());
  for (std::uint64_t id = 1'000'000; id < 1'009'200; ++id) CHECK(row(a, id) == row(b, id));
}

TEST_CASE("a step of several minibatches gives each row the mean over all of their records") {
  scratch const dir;
  store s = make();
  ids const first{1, 2}, second{2, 3};
  std::vector<float> const a{4, 8}, b{12, 16};  // gradients times 4 records
  using rows = std::vector<edl::sparse::row_gradients>;
  std::vector<rows> const both{{{first, a}}, {{second, b}}};
  std::vector<edl::contribution> const minibatches{of(0), of(1)};
  std::vector<float> sums(6);
  CHECK(s.step(minibatches, sums, both).version == 1);
  CHECK(row(s, 1) == 0.5f);
  CHECK(row(s, 2) == 2.5f);
  CHECK(row(s, 3) == 2);
  CHECK_THROWS_WITH_AS(s.step(std::vector{of(2)}, sums), doctest::Contains("a step of 1 minibatches"),
                       edl::error);

  // Where one half of the hash slots has counted a minibatch, the other half alone takes its rows.
  ids const low{id_of(false)}, high{id_of(true)}, ends{low[0], high[0]};
  store left = make(at_once, {0, 2048}, {0, 4}), right = make(at_once, {2048, 4096}, {4, 6});
  push(left, of(0), low, 3), push(right, of(0), high, 3);
  push(left, of(1), low, 5);
  store all = make();
  all.restore(save(dir, layout, 1, {left.full_snapshot(), right.full_snapshot()}));
  std::vector<float> const slopes{20, 20}, more{8, 8};
  all.step(minibatches, sums, std::vector<rows>{{{ends, slopes}}, {{ends, slopes}}});
  CHECK(row(all, low[0]) == 8);
  CHECK(row(all, high[0]) == 8);
  all.step(std::vector{of(2)}, sums, std::vector<rows>{{{ends, more}}});
  CHECK(row(all, low[0]) == 10);
  CHECK(row(all, high[0]) == 10);
}

TEST_CASE("where memory ends, a store says so once and for all, and is frozen no more") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  MESSAGE("skipped: sanitizers need more address space than this test leaves");
  return;
#endif
  // In a process of its own, whose memory is bounded.
  pid_t const child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto options = from_zero;
    options.width = 4096;
    auto wide = layout;
    wide.tables = {{"words", 4096}};
    store s({.layout = wide,
             .elements = {0, 6},
             .slots = {0, 4096},
             .tables = {options},
             .rule = adding,
             .when = at_once});
    // Less than a region of such rows.
    rlimit const most{std::size_t{1} << 31, std::size_t{1} << 31};
    if (::setrlimit(RLIMIT_AS, &most) != 0) ::_exit(2);
    std::vector<float> const slopes(4096, 1), zeros(6);
    ids const one{1};
    edl::sparse::row_gradients const rows{one, slopes};
    auto const refused = [](auto const& what, std::string const& why) {
      try {
        what();
      } catch (store_failure const& e) {
        return std::string(e.what()).find(why) != std::string::npos;
      } catch (...) {
      }
      return false;
    };
    auto const again = [&](std::uint32_t task) {
      s.push(of(task), 0, std::span(zeros).first(4), std::span(zeros).first(2), {&rows, 1});
    };
    std::string const why =
        "a step was applied in part, and cannot be undone: no room for more rows of a table";
    bool const good = refused([&] { again(0); }, why) && refused([&] { again(0); }, why) &&
                      refused([&] { again(1); }, why) && refused([&] { s.full_snapshot(); }, why);
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a store that holds some hash slots counts every minibatch, and has the rows of these alone") {
  store whole = make(), part = make();
  std::uint64_t const low = id_of(false), high = id_of(true);
  auto const step = [&](store& s, std::uint32_t task, float slope) {
    std::vector<float> sums(6, 1);
    ids const of_both{low, high};
    std::vector<float> const slopes(2, slope);
    std::vector<edl::contribution> const one{of(task)};
    std::vector<std::vector<edl::sparse::row_gradients>> const rows{{{of_both, slopes}}};
    s.step(one, sums, rows);
  };
  step(whole, 0, 4), step(part, 0, 4);
  part.rows().hold({0, 2048}, part.rows().of({0, 2048}));
  CHECK(part.rows().table(0).size() == 1);
  CHECK(part.rows().has_all(ids{low}));
  CHECK_FALSE(part.rows().has_all(ids{low, high}));
  step(whole, 1, 8), step(part, 1, 8);
  CHECK(part.version() == 2);
  CHECK(part.segments().counted() == whole.segments().counted());
  CHECK(row(part, low) == row(whole, low));
  CHECK(row(part, high) == 0);
  CHECK(values(part.current()) == values(whole.current()));

  // What is another's is refused, and taken once it is to be held.
  edl::sparse::copied_rows some;
  edl::sparse::row_cursor at{2048, 0};
  edl::sparse::append_rows(whole.rows().table(0), at, 4096, 1 << 20, some);
  auto const put = [&] {
    part.rows().put(0, std::as_bytes(std::span(some.rows)), std::as_bytes(std::span(some.candidates)));
  };
  CHECK_THROWS_WITH_AS(put(), doctest::Contains("belongs to another process"), edl::error);
  part.rows().hold({0, 4096});
  put();
  step(whole, 2, 2), step(part, 2, 2);
  CHECK(row(part, high) == row(whole, high));

  // Parts of a checkpoint: variables and some rows of one store, other rows of another.
  part.rows().hold({2048, 4096}, part.rows().of({2048, 4096}));
  scratch const dir;
  auto const path = edl::checkpoint::checkpoint_path(dir.path(), 3);
  edl::checkpoint::begin_checkpoint(path);
  edl::checkpoint::manifest m{.job = "j", .version = 3, .layout = edl::checkpoint::layout_digest(layout)};
  written_parts const first{.of_rows = written_parts::rows{{0, 2048}, 0, 2}};
  written_parts const second{.variables = false, .of_rows = written_parts::rows{{2048, 4096}, 1, 2}};
  CHECK_THROWS_WITH_AS(write_snapshot(part.full_snapshot(), path, layout, first),
                       doctest::Contains("[0, 2048)"), edl::error);
  for (auto const& files : {write_snapshot(whole.full_snapshot(), path, layout, first),
                            write_snapshot(part.full_snapshot(), path, layout, second)})
    m.files.insert(m.files.end(), files.begin(), files.end());
  CHECK(m.files.size() == 3);
  edl::checkpoint::commit_checkpoint(path, m);
  store back = make(), half = make();
  back.restore(path);
  half.rows().hold({0, 2048});
  half.restore(path);
  CHECK(back.version() == 3);
  CHECK(half.version() == 3);
  CHECK(back.segments().counted() == whole.segments().counted());
  CHECK(half.segments().counted() == whole.segments().counted());
  for (std::uint64_t const id : {low, high}) CHECK(row(back, id) == row(whole, id));
  CHECK(row(half, low) == row(whole, low));
  CHECK(half.rows().table(0).size() == 1);
}

TEST_CASE("a version that is to be written is frozen again where its rows are others now") {
  store s({.layout = layout,
           .elements = {0, 6},
           .slots = {0, 4096},
           .tables = {from_zero},
           .rule = adding,
           .when = at_once,
           .checkpoint_steps = 2});
  s.freeze_rows();
  CHECK_FALSE(s.due().checkpoint);
  for (std::uint32_t i = 0; i < 2; ++i) push(s, of(i), {id_of(false), id_of(true)}, 1);
  CHECK(s.due().checkpoint);
  s.rows().hold({0, 2048}, s.rows().of({0, 2048}));
  s.freeze_rows();  // what is frozen has these and more
  CHECK(s.frozen().checkpoint(2).hash_slots == edl::element_range{0, 4096});
  s.frozen().release_checkpoint(2);
  s.freeze_rows();
  CHECK(s.frozen().checkpoint(2).hash_slots == edl::element_range{0, 2048});
  s.rows().hold({0, 4096});
  s.freeze_rows();
  CHECK(s.frozen().checkpoint(2).hash_slots == edl::element_range{0, 4096});
}

}  // namespace store_rows_test
