// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "base/wire/scratch.hpp"
#include "edl/base/checkpoint/layout_digest.hpp"
#include "edl/core/random.hpp"
#include "edl/job/ps/store.hpp"
#include "job/ps/rules.hpp"

namespace exactly_once_test {

using namespace edl::ps;
using edl::minibatch_key;

namespace {

constexpr std::uint32_t epochs = 2, tasks = 6, minibatches = 3;
constexpr std::uint64_t checkpoint_steps = 5;

/// One element, told as plainly as it can be: what it is, and the set of what it has counted.
struct element {
  float value = 0;
  std::vector<float> slots;
  std::uint64_t steps = 0;
  std::set<minibatch_key> counted, applied;
  std::vector<minibatch_key> waiting;
  float sum = 0;
};

float gradient(minibatch_key const& key, std::size_t at) {
  edl::random_stream const random{.key = key.task.epoch * 1000u + key.task.index, .step = key.index};
  return float(random.below(17, at)) - 8;  // whole, so that sums are exact
}

/// A job of several servers beside the same job told element by element.
class job {
 public:
  job(edl::update_rule const& rule, policy const& when, unsigned seed)
      : rule_(rule), when_(when), random_(seed) {
    start(1 + random_() % 4);
    for (auto& s : servers_)
      s.configure([](std::size_t first, std::span<float> into) {
        for (std::size_t i = 0; i < into.size(); ++i) into[i] = initial(first + i);
      });
    elements_.resize(layout_.size());
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      elements_[i].value = initial(i);
      for (std::size_t slot = 0; slot < rule_.slots().size(); ++slot)
        elements_[i].slots.push_back(rule_.initial(slot));
    }
  }

  void run() {
    int crashes = 0;
    while (auto const key = some_missing()) {
      send(*key);
      save();
      if (saved_ && crashes < 3 && random_() % 40 == 0) crash(), ++crashes;
    }
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      servers_[i].flush();
      for (element& e : part(i))
        if (!e.waiting.empty()) apply_waiting(e);
    }
    compare();
  }

  void check_all_counted_once() const {
    std::vector<minibatch_key> all;
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch)
      for (std::uint32_t task = 0; task < tasks; ++task)
        for (std::uint32_t i = 0; i < minibatches; ++i) all.push_back({{epoch, task}, i, minibatches});
    std::size_t const n = when_.group();
    for (auto const& s : servers_) {
      CHECK(s.version() == (all.size() + n - 1) / n);
      CHECK(s.segments().size() == 1);
      auto const full = s.full_snapshot();
      CHECK(full.ledger().closed().at(0).count() == tasks);
      CHECK(full.ledger().closed().at(1).count() == tasks);
    }
  }

  /// For a rule that adds, and groups of one: the sum of all gradients, whatever the order.
  void check_sums() const {
    for (auto const& s : servers_)
      for (std::size_t i = 0; i < s.elements().size(); ++i) {
        std::size_t const at = s.elements().first + i;
        float sum = initial(at);
        for (std::uint32_t epoch = 0; epoch < epochs; ++epoch)
          for (std::uint32_t task = 0; task < tasks; ++task)
            for (std::uint32_t k = 0; k < minibatches; ++k)
              sum += gradient({{epoch, task}, k, minibatches}, at);
        CHECK(s.current()[i] == sum);
      }
  }

  int restores() const { return restores_; }
  int stales() const { return stales_; }

 private:
  struct saved {
    std::string path;
    std::vector<element> elements;
  };

  static float initial(std::size_t at) { return float(at % 7) - 3; }

  void start(std::size_t servers) {
    servers_.clear();
    for (std::uint32_t i = 0; i < servers; ++i)
      servers_.emplace_back(
          store_options{.layout = layout_,
                        .elements = edl::partition(layout_.size(), std::uint32_t(servers), i),
                        .rule = rule_,
                        .when = when_,
                        .checkpoint_steps = checkpoint_steps,
                        .most_frozen = 8});
    frozen_.assign(servers, {});
  }

  std::span<element> part(std::size_t server) {
    auto const range = servers_[server].elements();
    return std::span(elements_).subspan(range.first, range.size());
  }

  /// Where a worker that took over some task would go on; sometimes something sent long ago.
  std::optional<minibatch_key> some_missing() {
    std::vector<minibatch_key> open;
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch)
      for (std::uint32_t task = 0; task < tasks; ++task) {
        std::uint32_t least = minibatches;
        for (auto const& s : servers_) {
          auto const at = s.segments().position({epoch, task});
          least = std::min(least, at.closed ? minibatches : at.applied);
        }
        if (least < minibatches) open.push_back({{epoch, task}, least, minibatches});
      }
    if (open.empty()) return std::nullopt;
    auto key = open[random_() % std::min<std::size_t>(open.size(), 4)];  // four workers
    if (key.index > 0 && random_() % 4 == 0) key.index = std::uint32_t(random_() % key.index);
    return key;
  }

  /// To some of the servers, in any order: the worker may die between two.
  void send(minibatch_key const& key) {
    std::vector<std::size_t> order(servers_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    if (random_() % 5 == 0) order.resize(1 + random_() % order.size());
    for (std::size_t i : order) send(key, i);
  }

  void send(minibatch_key const& key, std::size_t server) {
    store& s = servers_[server];
    auto const range = s.elements();
    std::vector<float> all(range.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = gradient(key, range.first + i);
    std::uint64_t const version = s.version(),
                        computed_on = version - std::min<std::uint64_t>(version, random_() % 3);
    auto const r = s.push(key, computed_on, std::span(all).first(s.parameters()),
                          std::span(all).subspan(s.parameters()));

    auto const mine = part(server);
    bool const missing =
        std::any_of(mine.begin(), mine.end(), [&](element const& e) { return !e.counted.contains(key); });
    if (!missing) {
      CHECK(r.outcome == push_outcome::repeat);
    } else if (when_.stale(version, computed_on)) {
      CHECK(r.outcome == push_outcome::stale);
      ++stales_;
    } else {
      CHECK(r.outcome == push_outcome::applied);
      for (std::size_t i = 0; i < mine.size(); ++i)
        count(mine[i], key, all[i], i < s.parameters(), when_.rate(version, computed_on));
    }
    std::uint64_t least = ~0ull;
    for (element const& e : mine) least = std::min(least, e.steps);
    CHECK(r.version == least);
    if (r.checkpoint) frozen_[server][r.version] = {mine.begin(), mine.end()};
  }

  void count(element& e, minibatch_key const& key, float g, bool trained, float rate) {
    if (!e.counted.insert(key).second) return;
    e.sum = e.waiting.empty() ? g : e.sum + g;
    e.waiting.push_back(key);
    trained_[&e] = trained;
    if (e.waiting.size() >= when_.group()) apply_waiting(e, rate);
  }

  void apply_waiting(element& e, float rate = 1) {
    float const mean = e.sum / float(e.waiting.size());
    if (trained_.at(&e)) {
      std::vector<std::span<float>> slots;
      for (float& slot : e.slots) slots.emplace_back(&slot, 1);
      rule_.apply({&e.value, 1}, {&mean, 1}, slots, rate * rule_.learning_rate(e.steps), e.steps);
    } else {
      e.value += mean;
    }
    ++e.steps;
    e.applied.insert(e.waiting.begin(), e.waiting.end());
    e.waiting.clear();
  }

  /// Once every server has frozen a version, it is a checkpoint.
  void save() {
    if (frozen_[0].empty()) return;
    auto const version = frozen_[0].rbegin()->first;
    if (saved_ && saved_->path == edl::checkpoint::checkpoint_path(dir_.path(), version)) return;
    for (auto const& f : frozen_)
      if (!f.contains(version)) return;
    saved now{edl::checkpoint::checkpoint_path(dir_.path(), version), {}};
    edl::checkpoint::begin_checkpoint(now.path);
    edl::checkpoint::manifest all{.version = version, .layout = edl::checkpoint::layout_digest(layout_)};
    for (std::uint32_t i = 0; i < servers_.size(); ++i) {
      for (auto& file : write_snapshot(servers_[i].frozen().checkpoint(version), now.path, layout_,
                                       {.server = i, .servers = std::uint32_t(servers_.size())}))
        all.files.push_back(std::move(file));
      servers_[i].frozen().release_checkpoint(version);
      auto const& full = frozen_[i].at(version);
      now.elements.insert(now.elements.end(), full.begin(), full.end());
    }
    edl::checkpoint::commit_checkpoint(now.path, all);
    saved_ = std::move(now);
  }

  /// All servers are lost; others, perhaps more or fewer, take over.
  void crash() {
    compare();
    start(1 + random_() % 5);
    for (auto& s : servers_) s.restore(saved_->path);
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      elements_[i] = saved_->elements[i];
      elements_[i].counted = elements_[i].applied;
      elements_[i].waiting.clear();
    }
    ++restores_;
    compare();
  }

  /// Every bit.
  void compare() {
    for (std::size_t k = 0; k < servers_.size(); ++k) {
      auto const full = servers_[k].full_snapshot();
      auto const mine = part(k);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < mine.size(); ++i) {
        wrong += std::memcmp(&mine[i].value, &full.variables.variables()[i], sizeof(float)) != 0;
        for (std::size_t slot = 0; i < full.parameters && slot < full.slot_names.size(); ++slot)
          wrong += std::memcmp(&mine[i].slots[slot], &full.slots.values()[slot * full.slot_stride + i],
                               sizeof(float)) != 0;
      }
      CHECK(wrong == 0);
    }
  }

  edl::parameter_layout layout_ = odd_layout();
  edl::update_rule const& rule_;
  policy const& when_;
  std::mt19937 random_;
  scratch dir_;
  std::deque<store> servers_;
  std::vector<element> elements_;
  std::map<element const*, bool> trained_;
  std::vector<std::map<std::uint64_t, std::vector<element>>> frozen_;
  std::optional<saved> saved_;
  int restores_ = 0, stales_ = 0;
};

}  // namespace

TEST_CASE("exactly once: asynchronous, through repeats, crashes and other numbers of servers") {
  momentum_rule const rule;
  asynchronous const plain, modulated(true);
  int restores = 0;
  for (unsigned seed = 0; seed < 16; ++seed) {
    CAPTURE(seed);
    job j(rule, seed % 2 ? static_cast<policy const&>(modulated) : plain, seed);
    j.run();
    j.check_all_counted_once();
    restores += j.restores();
  }
  CHECK(restores > 8);
}

TEST_CASE("exactly once: the sum of whole gradients") {
  adding_rule const rule;
  asynchronous const plain;
  int restores = 0;
  for (unsigned seed = 100; seed < 116; ++seed) {
    CAPTURE(seed);
    job j(rule, plain, seed);
    j.run();
    j.check_all_counted_once();
    j.check_sums();
    restores += j.restores();
  }
  CHECK(restores > 8);
}

TEST_CASE("exactly once: synchronous, with groups and stale gradients") {
  momentum_rule const rule;
  int restores = 0, stales = 0;
  for (unsigned seed = 200; seed < 224; ++seed) {
    CAPTURE(seed);
    synchronous const when(1 + seed % 3, 1);
    job j(rule, when, seed);
    j.run();
    j.check_all_counted_once();
    restores += j.restores();
    stales += j.stales();
  }
  CHECK(restores > 8);
  CHECK(stales > 100);
}

}  // namespace exactly_once_test
