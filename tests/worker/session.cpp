// SPDX-License-Identifier: Apache-2.0
#include "edl/worker/session.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "edl/data/example_builder.hpp"
#include "edl/optim/rule.hpp"
#include "edl/optim/sgd.hpp"

using edl::task_kind;
using edl::worker::assignment;
using edl::worker::outcome;

namespace {

/// One shard of records 0, 1, 2, …; those in `bad` cannot be read.
class numbers_source : public edl::data::source {
 public:
  explicit numbers_source(std::uint64_t n, std::set<std::uint64_t> bad = {})
      : shards_{{"numbers", n}}, bad_(std::move(bad)) {}
  std::vector<edl::data::shard> const& shards() const override { return shards_; }
  std::unique_ptr<edl::data::reader> open() const override {
    struct reading : edl::data::reader {
      numbers_source const& from;
      explicit reading(numbers_source const& s) : from(s) {}
      void read(std::size_t, std::uint64_t record, edl::example& into) override {
        if (from.bad_.contains(record))
          throw edl::data_error("record " + std::to_string(record) + " is torn");
        edl::example_builder(into).integer("x", std::int64_t(record));
      }
    };
    return std::make_unique<reading>(*this);
  }

 private:
  std::vector<edl::data::shard> shards_;
  std::set<std::uint64_t> bad_;
};

/// A model of one parameter and one number of state, which counts what it sees.
class counting_trainer : public edl::worker::trainer {
 public:
  std::vector<float> arena{0, 0}, gradient{1};
  std::vector<float> outputs;
  std::vector<std::int32_t> seen;  // records trained on, in order
  std::vector<std::uint64_t> steps;
  double loss = 0.5;
  int not_finite = 0;  // so many passes from now have no loss

  edl::data::batch make_batch() const override { return edl::data::make_batch(4, 1, 0, 1); }
  void feed(edl::example const& record, edl::data::batch& b, int row, edl::mode) const override {
    b.class_row(row)[0] = std::int32_t(record.integer("x"));
  }
  std::span<float> variables() override { return arena; }
  edl::view<float> gradients() const override { return gradient; }
  double train(edl::data::batch const& b, std::uint64_t step,
               edl::worker::gradients_ready const& ready) override {
    seen.insert(seen.end(), b.classes.begin(), b.classes.begin() + b.rows);
    steps.push_back(step);
    arena[1] += 1;
    if (not_finite-- > 0) return std::numeric_limits<double>::quiet_NaN();
    if (std::isfinite(loss)) ready(0);
    return loss;
  }
  void evaluate(edl::data::batch const& b, std::span<double> totals) override { totals[0] += b.rows; }
  edl::view<float> predict(edl::data::batch const& b) override {
    outputs.assign(b.classes.begin(), b.classes.begin() + b.rows);
    return outputs;
  }
  std::size_t totals() const override { return 1; }
};

/// Gives out what stands in `work`, then says that the job is finished.
struct scripted_master : edl::worker::master_link {
  std::deque<assignment> work;
  std::vector<outcome> outcomes;
  std::vector<std::uint32_t> asked;  // lanes

  assignment next(std::uint32_t lane) override {
    asked.push_back(lane);
    assignment a;
    a.what = task_kind::finished;
    if (work.empty()) return a;
    a = work.front();
    work.pop_front();
    return a;
  }
  bool report(outcome const& o) override {
    outcomes.push_back(o);
    return true;
  }
};

struct scripted_parameters : edl::worker::parameter_link {
  struct push_made {
    edl::minibatch_key key;
    std::uint64_t version;
    float state_change;
  };
  std::vector<push_made> pushes;
  std::uint64_t version = 7, frozen = 0;
  int pulls = 0, stale = 0, roll_back_at = -1;
  std::vector<edl::minibatch_key> announced;  // while they were computed
  std::uint32_t held = 0;                     // what the servers have of a task that was begun

  std::uint64_t pull(std::span<float> variables) override {
    ++pulls;
    std::ranges::fill(variables, float(version));
    return version;
  }
  void pull_frozen(std::uint64_t v, std::span<float> variables) override {
    frozen = v;
    std::ranges::fill(variables, float(v));
  }
  void ready(edl::contribution const& m, edl::view<float>, std::size_t) override {
    announced.push_back(m.key);
  }
  edl::worker::pushed push(edl::contribution const& m, std::uint64_t v, edl::view<float>,
                           edl::view<float> change) override {
    CHECK(announced.back() == m.key);
    if (int(pushes.size()) == roll_back_at) {
      roll_back_at = -1;
      throw edl::worker::rolled_back("a server was lost");
    }
    if (stale > 0) return --stale, edl::worker::pushed{true, ++version};
    pushes.push_back({m.key, v, change[0]});
    return {false, ++version};
  }
  std::uint32_t position(edl::task_key const&, std::uint32_t) override { return held; }
};

struct bench {
  edl::worker::session_options options{.minibatch_size = 4, .shuffle = false};
  numbers_source from{100};
  counting_trainer model;
  edl::rule<edl::sgd> rule{edl::sgd{.learning_rate = 0.5f}};
  scripted_master master;
  scripted_parameters parameters;
  std::vector<float> predicted;

  assignment task(std::uint64_t begin, std::uint64_t end, task_kind what = task_kind::training) {
    assignment a;
    a.what = what;
    a.lease = 100 + begin;
    a.task = {0, std::uint32_t(begin)};
    a.shard_name = "numbers";
    a.begin = begin, a.end = end;
    return a;
  }
  bool run(std::function<bool()> stop = {}) {
    edl::worker::session s(options, model, rule, {&from, &from, &from}, master, parameters,
                           edl::logger(edl::severity::critical),
                           [this](assignment const&, edl::view<float> y) {
                             predicted.insert(predicted.end(), y.begin(), y.end());
                           });
    s.stop_when(std::move(stop));
    return s.run();
  }
};

}  // namespace

TEST_CASE("tasks are worked off in order, every minibatch pushed under its name") {
  bench b;
  b.master.work = {b.task(0, 10), b.task(20, 24)};
  CHECK(b.run());
  CHECK(b.model.seen == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 21, 22, 23});
  REQUIRE(b.parameters.pushes.size() == 4);
  CHECK(b.parameters.pushes[2].key == edl::minibatch_key{{0, 0}, 2, 3});
  CHECK(b.parameters.pushes[3].key == edl::minibatch_key{{0, 20}, 0, 1});
  CHECK(b.parameters.pulls == 4);
  for (auto const& p : b.parameters.pushes) CHECK(p.state_change == 1);
  CHECK(std::set<std::uint64_t>(b.model.steps.begin(), b.model.steps.end()).size() == 4);
  REQUIRE(b.master.outcomes.size() == 2);
  CHECK(b.master.outcomes[0].lease == 100);
  CHECK(b.master.outcomes[0].error.empty());
  CHECK_FALSE(b.master.outcomes[0].returned);
}

TEST_CASE("a model that keeps its samples has no record read twice") {
  struct keeping : counting_trainer {
    mutable std::set<std::uint64_t> kept;
    mutable int fed = 0;
    std::uint64_t training = 0, evaluation = 0;
    std::string expect(std::uint64_t t, std::uint64_t e) override {
      training = t, evaluation = e;
      return {};
    }
    void feed(edl::example const& record, edl::data::batch& b, int row, edl::mode m) const override {
      counting_trainer::feed(record, b, row, m);
      ++fed;
      if (m == edl::mode::training) kept.insert(b.first_place + b.records[std::size_t(row)]);
    }
    bool has(edl::data::batch& b) const override {
      if (b.identity.m != edl::mode::training) return false;
      for (std::size_t i = 0; i < b.records.size(); ++i) {
        if (!kept.contains(b.first_place + b.records[i])) return false;
        b.classes[i] = std::int32_t(b.records[i]);
      }
      return true;
    }
  } model;
  bench b;
  b.options.evaluates = true;
  auto again = b.task(0, 10);
  again.task.epoch = 1;
  b.master.work = {b.task(0, 10), again, b.task(8, 12, task_kind::evaluation)};
  edl::worker::session s(b.options, model, b.rule, {&b.from, &b.from, nullptr}, b.master, b.parameters,
                         edl::logger(edl::severity::critical));
  CHECK(model.training == 100);
  CHECK(model.evaluation == 100);
  b.options.one_pass = true, b.options.evaluates = false;
  {
    edl::worker::session const once(b.options, model, b.rule, {&b.from, &b.from, nullptr}, b.master,
                                    b.parameters, edl::logger(edl::severity::critical));
    CHECK(model.training == 0);
    CHECK(model.evaluation == 0);
  }
  CHECK(s.run());
  CHECK(model.seen == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(model.fed == 14);
  CHECK(b.parameters.pushes.size() == 6);
}

TEST_CASE("a task that was begun goes on where every server has it, and tells what was left out before") {
  bench b;
  b.from = numbers_source(100, {1, 9});
  b.options.skip_damaged = true;
  b.parameters.held = 2;
  auto a = b.task(0, 12);
  a.resumed = true, a.applied = 1;
  b.master.work = {a};
  CHECK(b.run());
  CHECK(b.model.seen == std::vector<std::int32_t>{8, 10, 11});
  REQUIRE(b.master.outcomes.size() == 1);
  CHECK(b.master.outcomes[0].skipped == 2);
  CHECK(b.master.outcomes[0].applied == 3);

  b.parameters.held = 3;  // nothing is left to do but to say so
  b.master.work = {a};
  CHECK(b.run());
  CHECK(b.model.seen.size() == 3);
  CHECK(b.master.outcomes[1].skipped == 2);
}

TEST_CASE("a gradient that came too late is computed again on newer parameters") {
  bench b;
  b.parameters.stale = 2;
  b.master.work = {b.task(0, 4)};
  CHECK(b.run());
  CHECK(b.model.seen == std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(b.model.steps[0] == b.model.steps[2]);  // the same random numbers
  CHECK(b.parameters.pulls == 3);
  REQUIRE(b.parameters.pushes.size() == 1);
  CHECK(b.parameters.pushes[0].version == 9);
  CHECK(b.parameters.pushes[0].state_change == 1);

  b.parameters.stale = 1000;
  b.master.work = {b.task(0, 4)};
  CHECK(b.run());  // others are always faster: it is theirs
  CHECK(b.parameters.pushes.size() == 1);
  CHECK(b.master.outcomes.back().returned);
  CHECK(b.master.outcomes.back().error.empty());
}

TEST_CASE("who looks on sees whether it is in the middle of a pass") {
  bench b;
  b.master.work = {b.task(0, 8), b.task(20, 24, task_kind::evaluation),
                   b.task(40, 48, task_kind::prediction)};
  struct looking : counting_trainer {
    edl::worker::progress const* seen = nullptr;
    std::vector<std::uint64_t> positions;
    double train(edl::data::batch const& batch, std::uint64_t step,
                 edl::worker::gradients_ready const& ready) override {
      positions.push_back(seen->position);
      return counting_trainer::train(batch, step, ready);
    }
    void evaluate(edl::data::batch const& batch, std::span<double> totals) override {
      positions.push_back(seen->position);
      counting_trainer::evaluate(batch, totals);
    }
    edl::view<float> predict(edl::data::batch const& batch) override {
      positions.push_back(seen->position);
      return counting_trainer::predict(batch);
    }
  } model;
  edl::worker::session s(b.options, model, b.rule, {&b.from, &b.from, &b.from}, b.master, b.parameters,
                         edl::logger(edl::severity::critical));
  model.seen = &s.seen();
  CHECK(s.run());
  CHECK(model.positions == std::vector<std::uint64_t>{1, 3, 5, 7, 9});
  CHECK(s.seen().position == 10);
}

TEST_CASE("a loss that is no number fails the task, and the next one goes on") {
  bench b;
  b.model.loss = std::numeric_limits<double>::quiet_NaN();
  b.master.work = {b.task(0, 8), b.task(8, 12)};
  CHECK(b.run());
  CHECK(b.parameters.pushes.empty());
  CHECK(b.parameters.announced.empty());
  REQUIRE(b.master.outcomes.size() == 2);
  for (outcome const& o : b.master.outcomes) {
    CHECK(o.error.find("the loss is nan at version 7") != std::string::npos);
    CHECK(o.applied == 0);
  }
}

TEST_CASE("what a pass without a loss has done to the state goes nowhere") {
  bench b;
  b.model.not_finite = 1;
  b.master.work = {b.task(0, 4), b.task(4, 8)};
  CHECK(b.run());
  REQUIRE(b.parameters.pushes.size() == 1);
  CHECK(b.parameters.pushes[0].state_change == 1);  // of one pass
}

TEST_CASE("a record that cannot be read fails its task alone") {
  bench b;
  b.from = numbers_source(100, {5});
  b.master.work = {b.task(0, 12), b.task(12, 16)};
  CHECK(b.run());
  CHECK(b.model.seen == std::vector<std::int32_t>{0, 1, 2, 3, 12, 13, 14, 15});
  REQUIRE(b.master.outcomes.size() == 2);
  CHECK(b.master.outcomes[0].error.find("record 5 is torn") != std::string::npos);
  CHECK(b.master.outcomes[0].applied == 1);
  CHECK(b.master.outcomes[1].error.empty());
}

TEST_CASE("told to stop, it hands back what it has leased, with how far it got") {
  bench b;
  b.master.work = {b.task(0, 12), b.task(12, 24), b.task(24, 36)};
  CHECK_FALSE(b.run([&] { return b.parameters.pushes.size() == 2; }));
  // The last first, as each goes before all that waits.
  REQUIRE(b.master.outcomes.size() == 2);
  CHECK(b.master.outcomes[0].returned);
  CHECK(b.master.outcomes[0].applied == 0);
  CHECK(b.master.outcomes[1].returned);
  CHECK(b.master.outcomes[1].applied == 2);
  CHECK(b.master.work.size() == 1);  // never leased
}

TEST_CASE("when the servers went back, what was leased is dropped and asked for anew") {
  bench b;
  b.parameters.roll_back_at = 1;
  b.master.work = {b.task(0, 8), b.task(8, 12), b.task(0, 8)};
  CHECK(b.run());
  // One minibatch of the first lease, the second refused; then only what is leased again.
  CHECK(b.model.seen == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7});
  REQUIRE(b.master.outcomes.size() == 1);
  CHECK(b.master.outcomes[0].lease == 100);
}

TEST_CASE("evaluation is of the frozen version, and training pulls again after it") {
  bench b;
  auto e = b.task(0, 6, task_kind::evaluation);
  e.version = 5;
  b.master.work = {e, b.task(8, 12)};
  CHECK(b.run());
  CHECK(b.parameters.frozen == 5);
  REQUIRE(b.master.outcomes.size() == 2);
  CHECK(b.master.outcomes[0].metrics == std::vector<double>{6});
  CHECK(b.parameters.pulls == 1);
}

TEST_CASE("predictions are given out task by task, in the order of the records") {
  bench b;
  b.master.work = {b.task(4, 14, task_kind::prediction)};
  CHECK(b.run());
  CHECK(b.predicted == std::vector<float>{4, 5, 6, 7, 8, 9, 10, 11, 12, 13});
  CHECK(b.parameters.pushes.empty());
}

TEST_CASE("between pulls it makes its own steps") {
  bench b;
  b.options.get_model_steps = 3;
  b.master.work = {b.task(0, 24)};
  CHECK(b.run());
  CHECK(b.parameters.pulls == 2);
  CHECK(b.parameters.pushes.size() == 6);
  for (auto const& p : b.parameters.pushes) CHECK(p.state_change == 1);  // of this step, not since the pull
  CHECK(b.model.arena[0] == 10 - 3 * 0.5f);
}

TEST_CASE("a lease on records that are not here is an error that asks for the same files") {
  bench b;
  auto a = b.task(0, 4);
  a.shard_name = "others";
  b.master.work = {a};
  CHECK(b.run());
  REQUIRE(b.master.outcomes.size() == 1);
  CHECK(b.master.outcomes[0].error.find("do all processes read the same files?") != std::string::npos);
}

TEST_CASE("a task is reported when all of its minibatches have been applied, not before") {
  struct late : scripted_parameters {
    scripted_master& master;
    std::vector<std::size_t> reported;  // before each push
    std::size_t waiting = 0;
    explicit late(scripted_master& m) : master(m) {}
    edl::worker::pushed push(edl::contribution const& m, std::uint64_t v, edl::view<float> g,
                             edl::view<float> change) override {
      reported.push_back(master.outcomes.size());
      waiting = (waiting + 1) % 3;  // every third push applies those before it
      return scripted_parameters::push(m, v, g, change);
    }
    std::size_t pending() const override { return waiting; }
    void idle(std::chrono::milliseconds) override { waiting = 0; }
  };
  bench b;
  late parameters(b.master);
  b.master.work = {b.task(0, 8), b.task(8, 16), b.task(16, 20)};  // of 2, 2 and 1 minibatches
  edl::worker::session s(b.options, b.model, b.rule, {&b.from, &b.from, &b.from}, b.master, parameters,
                         edl::logger(edl::severity::critical));
  CHECK(s.run());
  CHECK(parameters.reported == std::vector<std::size_t>{0, 0, 0, 1, 1});
  REQUIRE(b.master.outcomes.size() == 3);
  for (auto const& o : b.master.outcomes) CHECK(o.error.empty());
}

namespace {

/// A link to a world in which this worker has lanes 4 and 5; a step has one minibatch of each.
struct two_lanes : scripted_parameters {
  std::vector<edl::minibatch_key> waiting;
  std::vector<std::vector<edl::minibatch_key>> steps;
  std::vector<std::pair<std::uint32_t, bool>> turns;
  std::uint64_t generation = 3;
  std::size_t world_ends_after = 1000;
  int idled = 0;

  edl::worker::lane_range lanes() const override { return {4, 2, generation}; }
  void turn(std::uint32_t lane, bool last) override { turns.push_back({lane, last}); }
  std::size_t pending() const override { return waiting.size(); }
  edl::worker::pushed push(edl::contribution const& m, std::uint64_t v, edl::view<float> g,
                           edl::view<float> change) override {
    waiting.push_back(m.key);
    if (turns.back().second) step();
    return scripted_parameters::push(m, v, g, change);
  }
  void idle(std::chrono::milliseconds patience) override {
    ++idled;
    if (!waiting.empty()) {
      CHECK(patience.count() == 0);
      step();
    }
  }
  void step() {
    if (steps.size() == world_ends_after) {
      world_ends_after = 1000;
      waiting.clear();
      ++generation;
      throw edl::worker::rolled_back("the next world");
    }
    steps.push_back(std::exchange(waiting, {}));
  }
};

/// Each lane's own tasks.
struct dealing_master : edl::worker::master_link {
  std::map<std::uint32_t, std::deque<assignment>> work;
  std::vector<outcome> outcomes;
  bool over = false;

  assignment next(std::uint32_t lane) override {
    assignment a;
    a.what = over ? task_kind::finished : task_kind::wait;
    auto& mine = work[lane];
    if (mine.empty()) return a;
    a = mine.front();
    mine.pop_front();
    return a;
  }
  bool report(outcome const& o) override {
    outcomes.push_back(o);
    return true;
  }
};

std::vector<edl::minibatch_key> minibatches(
    std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> task_and_index) {
  std::vector<edl::minibatch_key> all;
  for (auto const& [task, index] : task_and_index) all.push_back({{0, task}, index, 2});
  return all;
}

}  // namespace

TEST_CASE("lanes are worked off together, one minibatch of each in a step") {
  bench b;
  two_lanes parameters;
  dealing_master master;
  auto evaluation = b.task(60, 68, task_kind::evaluation);
  master.work[4] = {b.task(0, 8), b.task(8, 16)};
  master.work[5] = {evaluation, b.task(20, 28)};
  edl::worker::session s(b.options, b.model, b.rule, {&b.from, &b.from, &b.from}, master, parameters,
                         edl::logger(edl::severity::critical));
  int asked = 0;
  s.stop_when([&] {
    master.over = parameters.idled > 0 && parameters.steps.size() >= 4 && ++asked > 3;
    return false;
  });
  CHECK(s.run());
  // Lane 5 has an evaluation before its task, and nothing when lane 4 still has.
  REQUIRE(parameters.steps.size() == 4);
  CHECK(parameters.steps[0] == minibatches({{0, 0}, {20, 0}}));
  CHECK(parameters.steps[1] == minibatches({{0, 1}, {20, 1}}));
  CHECK(parameters.steps[2] == minibatches({{8, 0}}));
  CHECK(parameters.steps[3] == minibatches({{8, 1}}));
  CHECK(parameters.turns == std::vector<std::pair<std::uint32_t, bool>>{
                                {0, false}, {1, true}, {0, false}, {1, true}, {0, true}, {0, true}});
  REQUIRE(master.outcomes.size() == 4);
  CHECK(master.outcomes[0].metrics == std::vector<double>{8});
  for (auto const& o : master.outcomes) CHECK(o.error.empty());
}

TEST_CASE("a lane that turns out to have nothing holds up no step, and the next world deals anew") {
  bench b;
  two_lanes parameters;
  dealing_master master;
  master.work[4] = {b.task(0, 8)};
  master.work[5] = {b.task(60, 64, task_kind::evaluation)};
  parameters.world_ends_after = 1;
  edl::worker::session s(b.options, b.model, b.rule, {&b.from, &b.from, &b.from}, master, parameters,
                         edl::logger(edl::severity::critical));
  s.stop_when([&] {
    if (parameters.generation == 4 && parameters.steps.size() == 1) {
      auto again = b.task(0, 8);
      again.resumed = true;
      parameters.held = 1;
      master.work[4] = {again};
      ++parameters.generation;  // once
    }
    master.over = parameters.steps.size() >= 2;
    return false;
  });
  CHECK(s.run());
  REQUIRE(parameters.steps.size() == 2);
  CHECK(parameters.steps[0] == minibatches({{0, 0}}));
  CHECK(parameters.steps[1] == minibatches({{0, 1}}));
  CHECK(parameters.turns.front() == std::pair<std::uint32_t, bool>{0, false});  // it seemed to have something
  CHECK(parameters.idled > 0);
  CHECK(master.outcomes.back().lease == 100);
}
