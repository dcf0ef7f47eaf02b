// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/loader.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/order.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/data/split.hpp"

namespace loader_test {

using namespace edl::data;
using edl::mode, edl::task_key;
using support::failure, support::has;

namespace {

/// Record i of shard s has label 1000·s + i; those in `bad` cannot be read.
class counting_source : public source {
 public:
  explicit counting_source(std::vector<std::uint64_t> const& sizes, std::set<std::int64_t> bad = {})
      : bad_(std::move(bad)) {
    for (auto n : sizes) shards_.push_back({"shard-" + std::to_string(shards_.size()), n});
  }
  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override {
    struct counting : reader {
      counting_source const& from;
      explicit counting(counting_source const& s) : from(s) {}
      void read(std::size_t shard, std::uint64_t record, edl::example& into) override {
        auto const label = std::int64_t(1000 * shard + record);
        if (from.bad_.contains(label))
          throw edl::data_error(from.shards_[shard].name + ": record " + std::to_string(record) +
                                " is damaged");
        edl::example_builder(into).integer("label", label);
      }
    };
    return std::make_unique<counting>(*this);
  }

 private:
  std::vector<shard> shards_;
  std::set<std::int64_t> bad_;
};

void decode(edl::example const& e, batch& b, int row, mode) {
  b.class_row(row)[0] = std::int32_t(e.integer("label"));
}

auto const make = [] { return make_batch(8, 1, 0, 1); };

std::vector<std::int64_t> labels(batch const& b) { return {b.classes.begin(), b.classes.begin() + b.rows}; }

/// What minibatch `i` of a shuffled task must hold.
std::vector<std::int64_t> expected(std::uint64_t seed, work const& w, std::uint64_t size, std::uint64_t i) {
  std::vector<std::uint64_t> order;
  task_order(seed, w.task, w.begin, w.end, order);
  std::vector<std::int64_t> labels;
  for (auto at = i * size; at < std::min<std::uint64_t>(order.size(), (i + 1) * size); ++at)
    labels.push_back(std::int64_t(1000 * w.shard + order[std::size_t(at)]));
  std::sort(labels.begin(), labels.end());
  return labels;
}

}  // namespace

TEST_CASE("batches come in order, and hold what the tasks' orders say") {
  counting_source const from{{100, 37}};
  for (int threads : {0, 1, 3})
    for (int ring : {2, 5}) {
      loader l{from, {.threads = threads, .ring = ring, .minibatch_size = 8, .seed = 5}, make, decode};
      std::vector<work> const tasks{{{0, 0}, 0, 0, 60, mode::training, 0, 1},
                                    {{0, 1}, 0, 60, 100, mode::training, 2, 2},
                                    {{0, 2}, 1, 0, 37, mode::evaluation, 0, 3},
                                    {{1, 2}, 1, 0, 37, mode::training, 0, 4}};
      for (auto const& w : tasks) l.submit(w);
      l.close();
      for (auto const& w : tasks) {
        auto const count = minibatches(w.begin, w.end, 8);
        for (std::uint64_t i = w.first_minibatch; i < count; ++i) {
          batch* const b = l.next();
          REQUIRE(b);
          CHECK(b->identity ==
                batch_identity{{w.task, std::uint32_t(i), std::uint32_t(count)}, w.m, w.ticket});
          CHECK(b->shard == from.shards()[w.shard].name);
          CHECK(b->error == "");
          CHECK(b->rows == int(std::min<std::uint64_t>(8, w.end - w.begin - 8 * i)));
          CHECK(b->records.size() == std::size_t(b->rows));
          for (int r = 0; r < b->rows; ++r)
            CHECK(b->classes[std::size_t(r)] == std::int32_t(1000 * w.shard + b->records[std::size_t(r)]));
          if (w.m == mode::training) {
            CHECK(labels(*b) == expected(5, w, 8, i));
          } else {
            for (int r = 0; r < b->rows; ++r)
              CHECK(b->records[std::size_t(r)] == w.begin + 8 * i + std::uint64_t(r));
          }
          l.recycle(b);
        }
      }
      CHECK(l.next() == nullptr);
      CHECK(l.next() == nullptr);
      CHECK(has(failure([&] { l.submit(tasks[0]); }), "closed"));
    }
}

TEST_CASE("without shuffling training goes in order as well; every record comes once either way") {
  counting_source const from{{100}};
  for (bool shuffle : {false, true}) {
    loader l{from, {.minibatch_size = 8, .shuffle = shuffle}, make, decode};
    l.submit({{0, 0}, 0, 10, 95});
    l.close();
    std::vector<std::int64_t> all;
    while (batch* const b = l.next()) {
      auto const some = labels(*b);
      all.insert(all.end(), some.begin(), some.end());
      l.recycle(b);
    }
    CHECK(std::is_sorted(all.begin(), all.end()) == !shuffle);
    std::sort(all.begin(), all.end());
    REQUIRE(all.size() == 85);
    for (std::size_t i = 0; i < 85; ++i) REQUIRE(all[i] == std::int64_t(10 + i));
  }
}

TEST_CASE("a damaged record fails its batch and nothing else") {
  counting_source const from{{32}, {11}};
  loader l{from, {.minibatch_size = 8, .shuffle = false}, make, decode};
  l.submit({{0, 0}, 0, 0, 32});
  l.close();
  for (int i = 0; i < 4; ++i) {
    batch* const b = l.next();
    REQUIRE(b);
    CHECK(b->error ==
          (i == 1 ? "shard-0: record 11 is damaged; mend the record, or leave it out with --skip_damaged"
                  : ""));
    CHECK(b->rows == (i == 1 ? 0 : 8));
    CHECK(b->records.size() == 8);
    CHECK(b->skipped == 0);
    l.recycle(b);
  }
  CHECK(!l.next());
}

TEST_CASE("skipping, a damaged record is counted and left out") {
  counting_source const from{{32}, {8, 11, 15, 16, 17, 18, 19, 20, 21, 22, 23}};
  loader l{from, {.minibatch_size = 8, .shuffle = false, .skip_damaged = true}, make, decode};
  l.submit({{0, 0}, 0, 0, 32});
  l.close();
  std::vector<int> rows, skipped;
  while (batch* const b = l.next()) {
    CHECK(b->error == "");
    rows.push_back(b->rows);
    skipped.push_back(b->skipped);
    CHECK(b->damage.size() == std::size_t(b->skipped));
    if (rows.size() == 2) {
      CHECK(b->damage.front() == "shard-0: record 8 is damaged");
      CHECK(labels(*b) == std::vector<std::int64_t>{9, 10, 12, 13, 14});
      CHECK(b->records == std::vector<std::uint64_t>{9, 10, 12, 13, 14});
    }
    l.recycle(b);
  }
  CHECK(rows == std::vector<int>{8, 5, 0, 8});
  CHECK(skipped == std::vector<int>{0, 3, 8, 0});
}

TEST_CASE("what was kept is not read again, damaged records' minibatches are") {
  counting_source const from({6, 10}, {1003});
  std::mutex lock;
  std::map<std::uint64_t, std::int32_t> kept;  // by place among all records
  int decoded = 0;
  auto const keep = [&](edl::example const& e, batch& b, int row, mode m) {
    decode(e, b, row, m);
    std::lock_guard const hold(lock);
    ++decoded;
    kept[b.first_place + b.records[std::size_t(row)]] = b.classes[std::size_t(row)];
  };
  loader l(from, {.threads = 0, .minibatch_size = 4, .skip_damaged = true}, make, keep, [&](batch& b) {
    std::lock_guard const hold(lock);
    for (std::size_t i = 0; i < b.records.size(); ++i) {
      auto const it = kept.find(b.first_place + b.records[i]);
      if (it == kept.end()) return false;
      b.classes[i] = it->second;
    }
    return true;
  });
  std::vector<std::vector<std::int64_t>> read[2];
  std::vector<bool> was_kept;
  int left_out[2] = {0, 0};
  for (int time : {0, 1}) {
    l.submit({.task = {0, 1}, .shard = 0, .begin = 0, .end = 6});
    l.submit({.task = {0, 2}, .shard = 1, .begin = 0, .end = 10});
    for (int i = 0; i < 5; ++i) {
      batch* const b = l.next();
      REQUIRE(b);
      CHECK(b->rows == int(b->records.size()));
      read[time].push_back(labels(*b));
      if (time == 1) was_kept.push_back(b->kept);
      left_out[time] += b->skipped;
      l.recycle(b);
    }
  }
  CHECK(read[0] == read[1]);
  CHECK(std::ranges::count(was_kept, false) == 1);
  CHECK(left_out[0] == 1);
  CHECK(left_out[1] == 1);
  CHECK(kept.size() == 15);
  CHECK(decoded == 15 + 3);
}

TEST_CASE("whoever goes on with a task can tell what was left out of it before") {
  counting_source const from{{100}, {3, 40, 41, 77}};
  loader_options const options{.minibatch_size = 8, .seed = 3, .skip_damaged = true};
  loader l{from, options, make, decode};
  for (mode m : {mode::training, mode::evaluation})
    for (std::uint32_t first = 0; first <= 13; ++first) {
      work task{{0, 0}, 0, 0, 100, m, first, 1};
      std::uint64_t after = 0;
      if (first < 13) {
        l.submit(task);
        for (std::uint32_t i = first; i < 13; ++i) {
          batch* const b = l.next();
          after += std::uint64_t(b->skipped);
          l.recycle(b);
        }
      }
      CHECK(l.damaged_before(task) + after == 4);
    }
  loader strict{from, {.minibatch_size = 8}, make, decode};
  CHECK(strict.damaged_before({{0, 0}, 0, 0, 100, mode::training, 13, 1}) == 0);
  CHECK_THROWS_AS((void)l.damaged_before({{0, 0}, 0, 0, 101, mode::training, 1, 1}), edl::error);
}

TEST_CASE("what the feed throws is the batch's error, with the record's place") {
  counting_source const from{{16}};
  auto const feed = [](edl::example const& e, batch&, int, mode) {
    if (e.integer("label") == 3) (void)e.floats("image");
    if (e.integer("label") == 12) throw 5;
  };
  loader l{from, {.minibatch_size = 8, .shuffle = false}, make, feed};
  l.submit({{0, 0}, 0, 0, 16});
  batch* b = l.next();
  CHECK(has(b->error,
            "record 3 of shard-0: the record has no floats as feature 'image'; it has label (1 integers)"));
  CHECK(b->rows == 0);
  l.recycle(b);
  b = l.next();
  CHECK(b->error == "record 12 of shard-0: the feed failed");
  l.recycle(b);
}

TEST_CASE("a record that the feed refuses has the number that it has in its file") {
  auto const whole = std::make_shared<counting_source>(std::vector<std::uint64_t>{100});
  split_source const held_out(whole, 0.1, 3, split_part::validation);
  auto const feed = [](edl::example const& e, batch&, int, mode) {
    throw edl::data_error("has label " + std::to_string(e.integer("label")));
  };
  loader l{held_out, {.minibatch_size = 1, .shuffle = false}, make, feed};
  l.submit({{0, 0}, 0, 4, 5});
  batch* const b = l.next();
  auto const number = std::to_string(held_out.place(0, 4));
  CHECK(has(b->error, "record " + number + " of shard-0: has label " + number));
}

TEST_CASE("records that the feed refuses are left out one by one, as those that cannot be read") {
  counting_source const from{{24}, {9}};
  auto const feed = [](edl::example const& e, batch& b, int row, mode m) {
    auto const label = e.integer("label");
    if (label == 3 || label == 5 || label >= 16) throw edl::data_error("label is out of range");
    decode(e, b, row, m);
  };
  loader l{from, {.minibatch_size = 8, .shuffle = false, .skip_damaged = true}, make, feed};
  work const all{{0, 0}, 0, 0, 24};
  l.submit(all);
  int const rows[] = {6, 7, 0}, skipped[] = {2, 1, 8};
  for (int i = 0; i < 3; ++i) {
    batch* const b = l.next();
    CHECK(b->error == "");
    CHECK(b->rows == rows[i]);
    CHECK(b->skipped == skipped[i]);
    if (i == 0) CHECK(b->damage.front() == "record 3 of shard-0: label is out of range");
    l.recycle(b);
  }
  work resumed = all;
  resumed.first_minibatch = 2;
  CHECK(l.damaged_before(resumed) == 3);
}

TEST_CASE(
    "a cell that is no number is the damage of its own record, also in a list of files and in a part of "
    "them") {
  support::scratch const dir;
  std::string text = "label,name\n";
  for (int i = 0; i < 24; ++i) text += (i == 20 ? std::string("4o") : std::to_string(i)) + ",\"a\nb\"\n";
  support::write(dir / "a.csv", text);
  std::shared_ptr<source const> const from =
      open_source((support::write(dir / "b.csv", "label,name\n1,x\n")) + "," + (dir / "a.csv"));
  std::string const told =
      "record 20 of a.csv, line 42: the record has not integers as feature 'label', but '4o'; it has label "
      "(1 "
      "byte strings), name (1 byte strings); --missing=auto,4o reads such cells of a table as missing";
  auto const last_batch = [&](source const& s, bool skip) {
    loader l(s, {.minibatch_size = 8, .shuffle = false, .skip_damaged = skip}, make, decode);
    std::uint64_t const records = s.shards().back().records;
    l.submit({{0, 0}, std::uint32_t(s.shards().size() - 1), records - 8, records});
    return batch(*l.next());
  };
  CHECK(last_batch(*from, false).error == told + "; mend the record, or leave it out with --skip_damaged");
  batch const b = last_batch(*from, true);
  CHECK(b.error == "");
  CHECK(b.rows == 7);
  CHECK(b.damage == std::vector<std::string>{told});
  split_source const part(from, 0.02, 3, split_part::training);
  CHECK(has(last_batch(part, false).error, "record 20 of a.csv, line 42: "));
}

TEST_CASE("a file that has changed is no damage, and a label of no output no reason to leave records out") {
  struct changing : counting_source {
    using counting_source::counting_source;
    struct reading : edl::data::reader {
      void read(std::size_t, std::uint64_t record, edl::example& into) override {
        if (record == 5) throw edl::changed_error("f: has 9 bytes but had 8");
        edl::example_builder(into).integer("label", std::int64_t(record));
      }
    };
    std::unique_ptr<edl::data::reader> open() const override { return std::make_unique<reading>(); }
  };
  changing const from{{16}};
  loader skips{from, {.minibatch_size = 8, .shuffle = false, .skip_damaged = true}, make, decode};
  skips.submit({{0, 0}, 0, 0, 16});
  CHECK(skips.next()->error == "f: has 9 bytes but had 8");
  CHECK_THROWS_AS((void)skips.damaged_before({{0, 0}, 0, 0, 16, mode::training, 1}), edl::changed_error);

  auto const feed = [](edl::example const& e, batch& b, int row, mode m) {
    if (e.integer("label") == 3) throw edl::misfit_error("label 3 is out of range");
    decode(e, b, row, m);
  };
  counting_source const whole{{16}};
  loader strict{whole, {.minibatch_size = 8, .shuffle = false}, make, feed};
  strict.submit({{0, 0}, 0, 0, 16});
  CHECK(strict.next()->error == "record 3 of shard-0: label 3 is out of range");
}

TEST_CASE("work may end before its task does, whose order and count stay") {
  counting_source const from{{40}};
  loader_options const options{.minibatch_size = 8, .seed = 5};
  std::vector<std::vector<std::uint64_t>> got[2];
  for (std::uint32_t const end : {0u, 3u}) {
    loader l{from, options, make, decode};
    work task{{0, 0}, 0, 0, 40};
    task.end_minibatch = end;
    l.submit(task);
    for (std::uint32_t i = 0; i < (end ? end : 5); ++i) {
      batch* const b = l.next();
      CHECK(b->identity.key.index == i);
      CHECK(b->identity.key.count == 5);
      got[end ? 1 : 0].push_back(b->records);
      l.recycle(b);
    }
    task.first_minibatch = 3;
    if (end) CHECK_THROWS_AS(l.submit(task), edl::error);
    l.close();
    CHECK(l.next() == nullptr);
  }
  got[0].resize(3);
  CHECK(got[0] == got[1]);
}

TEST_CASE("a feed that takes no record at all is an error, and no damage") {
  counting_source const from{{16}};
  auto const feed = [](edl::example const& e, batch&, int, mode) { (void)e.floats("image"); };
  loader l{from, {.minibatch_size = 8, .shuffle = false, .skip_damaged = true}, make, feed};
  l.submit({{0, 0}, 0, 0, 16});
  for (int i = 0; i < 2; ++i) {
    batch* const b = l.next();
    CHECK(has(b->error, "the record has no floats as feature 'image'"));
    l.recycle(b);
  }
}

TEST_CASE("options and work that cannot be are refused") {
  counting_source const from{{16}};
  auto const started = [&](loader_options const& o) {
    return failure([&] { loader(from, o, make, decode); });
  };
  CHECK(has(started({.threads = -1}), "threads"));
  CHECK(has(started({.ring = 1}), "ring"));
  CHECK(has(started({.minibatch_size = 0}), "at least 1"));
  CHECK(has(started({.minibatch_size = 9}), "a batch holds 8 samples, a minibatch has 9"));
  loader l{from, {.minibatch_size = 8}, make, decode};
  CHECK(has(failure([&] { l.submit({{0, 0}, 1, 0, 8}); }), "shard 1"));
  CHECK(has(failure([&] { l.submit({{0, 0}, 0, 8, 8}); }), "records [8, 8)"));
  CHECK(has(failure([&] { l.submit({{0, 0}, 0, 8, 17}); }), "it has 16"));
  CHECK(has(failure([&] { l.submit({{0, 0}, 0, 0, 16, mode::training, 2}); }), "minibatch 2"));
  CHECK_FALSE(l.ready());
}

TEST_CASE("cancelled work is dropped, also what is ready or being filled") {
  counting_source const from{{1000}};
  for (int round = 0; round < 50; ++round) {
    loader l{from, {.threads = 3, .ring = 4, .minibatch_size = 8}, make, decode};
    l.submit({{0, 0}, 0, 0, 500, mode::training, 0, 7});
    l.submit({{0, 1}, 0, 500, 580, mode::training, 0, 8});
    batch* const held = l.next();
    REQUIRE(held);
    CHECK(held->identity.ticket == 7);
    for (int i = 0; i < round % 4; ++i) l.recycle(l.next());
    l.cancel(7);
    l.submit({{0, 2}, 0, 600, 616, mode::training, 0, 7});  // later work may bear the same ticket
    l.close();
    l.recycle(held);
    int eights = 0, sevens = 0;
    while (batch* const b = l.next()) {
      ++(b->identity.ticket == 8 ? eights : sevens);
      CHECK(b->identity.key.task.index != 0);
      l.recycle(b);
    }
    CHECK(eights == 10);
    CHECK(sevens == 2);
  }
}

TEST_CASE("stopping wakes whoever waits; a loader may end at any time") {
  counting_source const from{{1000}};
  for (int round = 0; round < 100; ++round) {
    loader l{from, {.threads = 2, .ring = 3, .minibatch_size = 8}, make, decode};
    std::atomic<int> taken = 0;
    std::thread consumer{[&] {
      while (batch* const b = l.next()) {
        ++taken;
        l.recycle(b);
      }
    }};
    std::thread producer{[&] {
      for (std::uint32_t i = 0; i < 20; ++i) l.submit({{0, i}, 0, i * 8, i * 8 + 40, mode::training, 0, i});
    }};
    std::thread stopper{[&] {
      while (taken < round) std::this_thread::yield();
      l.cancel(3);
      l.stop();
    }};
    consumer.join(), producer.join(), stopper.join();
    CHECK(l.next() == nullptr);
  }
  // Ends with work queued and a batch in the caller's hands.
  loader l{from, {.minibatch_size = 8}, make, decode};
  l.submit({{0, 0}, 0, 0, 1000});
  CHECK(l.next());
}

TEST_CASE("a slow first batch holds back those behind it, not their decoding") {
  counting_source const from{{24}};
  std::mutex mutex;
  std::condition_variable changed;
  int others = 0;
  auto const feed = [&](edl::example const& e, batch& b, int row, mode m) {
    decode(e, b, row, m);
    std::unique_lock lock{mutex};
    if (e.integer("label") == 0) changed.wait(lock, [&] { return others == 16; });
    if (e.integer("label") >= 8) ++others;
    changed.notify_all();
  };
  loader l{from, {.threads = 2, .ring = 3, .minibatch_size = 8, .shuffle = false}, make, feed};
  l.submit({{0, 0}, 0, 0, 24});
  l.close();
  for (std::uint32_t i = 0; i < 3; ++i) {
    batch* const b = l.next();
    REQUIRE(b);
    CHECK(b->identity.key.index == i);
    l.recycle(b);
  }
}

TEST_CASE("batches are made once") {
  counting_source const from{{1000}};
  std::atomic<int> made = 0;
  loader l{from, {.ring = 3, .minibatch_size = 8}, [&] { return ++made, make_batch(8, 1, 0, 1); }, decode};
  l.submit({{0, 0}, 0, 0, 1000});
  l.close();
  std::map<batch const*, std::pair<float const*, std::uint64_t const*>> seen;
  int batches = 0;
  while (batch* const b = l.next()) {
    ++batches;
    auto const [it, fresh] = seen.try_emplace(b, b->features.data(), b->records.data());
    if (!fresh)
      CHECK(it->second == std::pair{static_cast<float const*>(b->features.data()),
                                    static_cast<std::uint64_t const*>(b->records.data())});
    l.recycle(b);
  }
  CHECK(batches == 125);
  CHECK(made == 3);
  CHECK(seen.size() <= 3);
}

TEST_CASE("who computes fills the batches, several threads side by side") {
  counting_source const from{{100}};
  loader l{from, {.threads = 0, .ring = 4, .minibatch_size = 8, .shuffle = false}, make, decode};
  CHECK_FALSE(l.fill_next());  // nothing is queued
  l.submit({{0, 0}, 0, 0, 100, mode::training, 0, 1});
  CHECK_FALSE(l.ready());
  for (std::uint64_t i = 0; i < 13; ++i) {
    if (!l.ready()) {
      std::thread other([&] { l.fill_next(); });
      l.fill_next();
      other.join();
    }
    CHECK(l.ready());
    batch* const b = l.next();
    REQUIRE(b);
    CHECK(b->error == "");
    CHECK(b->records.front() == 8 * i);
    l.recycle(b);
  }
  CHECK_FALSE(l.fill_next());
  l.submit({{0, 1}, 0, 0, 100, mode::training, 0, 2});
  for (int i = 0; i < 4; ++i) CHECK(l.fill_next());
  CHECK_FALSE(l.fill_next());  // the ring is full
}

TEST_CASE("who waits for a batch fills what another thread submits") {
  counting_source const from{{16}};
  loader l{from, {.threads = 0, .ring = 2, .minibatch_size = 8, .shuffle = false}, make, decode};
  std::thread other([&] { l.submit({{0, 0}, 0, 0, 16, mode::training, 0, 1}); });
  batch* const b = l.next();
  other.join();
  REQUIRE(b);
  CHECK(b->rows == 8);
}

}  // namespace loader_test
