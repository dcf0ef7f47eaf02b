// SPDX-License-Identifier: Apache-2.0
#include "edl/job/worker/session.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "base/net/peers.hpp"
#include "edl/compute/nn/trace.hpp"
#include "edl/job/worker/kept_minibatch.hpp"
#include "job/worker/scripted_session.hpp"

namespace session_test {

using namespace scripted_session;

TEST_CASE("each moment of a session counts for one part, the innermost") {
  using edl::worker::time_account;
  time_account a(true), off(false);
  auto const spend = [&](time_account::part p, auto&&... inside) {
    time_account::scope const counts(a, p), nothing(off, p);
    for (auto const until = edl::clock::now() + std::chrono::microseconds(10); edl::clock::now() < until;) {
    }
    (inside(), ...);
  };
  auto const began = edl::clock::now();
  spend(time_account::training, [&] { spend(time_account::step); });
  auto const between = edl::clock::now();
  while (edl::clock::now() == between) {  // counts for none
  }
  auto const again = edl::clock::now();
  spend(time_account::evaluation);
  auto const ended = edl::clock::now();
  auto all = std::chrono::nanoseconds(0);
  for (std::size_t i = 0; i < time_account::parts; ++i) all += a.of(time_account::part(i));
  for (auto const p : {time_account::training, time_account::step, time_account::evaluation}) {
    CHECK(a.of(p) >= std::chrono::microseconds(10));
    CHECK(off.of(p).count() == 0);
  }
  CHECK(a.of(time_account::tasks).count() == 0);
  CHECK(all <= (between - began) + (ended - again));
}

TEST_CASE("a session that is profiled accounts for all of its time, and no other for any") {
  using edl::worker::time_account;
  for (bool const profiled : {true, false}) {
    struct : counting_trainer {
      edl::nn::trace const* timed = nullptr;
      edl::nn::trace const* profile() const override { return timed; }
    } model;
    edl::nn::trace const layers;
    if (profiled) model.timed = &layers;
    bench b;
    b.master.work = {b.task(0, 10), b.task(20, 24, task_kind::evaluation),
                     b.task(30, 34, task_kind::prediction)};
    edl::worker::session s(b.options, model, b.rule, {&b.from, &b.evaluated, &b.from}, b.master, b.parameters,
                           edl::logger(edl::severity::critical));
    CHECK(s.run());
    for (std::size_t i = 0; i < time_account::parts; ++i)
      CHECK((s.account().of(time_account::part(i)).count() > 0) == profiled);
    CHECK((s.account().loading.reading > 0) == profiled);
    CHECK((s.account().loading.feeding > 0) == profiled);
  }
}

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
  CHECK(model.fed == 14 + 8);  // and what is to be evaluated was tried before
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

TEST_CASE("what is to be evaluated is tried before anything is trained, at both of its ends") {
  for (std::uint64_t const bad : {2, 50, 99}) {
    bench b;
    b.evaluated = numbers_source(100, {bad});
    b.master.work = {b.task(0, 4), b.task(4, 8)};
    CHECK(b.run());
    if (bad == 50) {
      CHECK(b.model.seen.size() == 8);
      continue;
    }
    CHECK(b.model.seen.empty());
    REQUIRE(b.master.outcomes.size() == 2);
    for (outcome const& o : b.master.outcomes)
      CHECK(o.error == "the evaluation's data cannot be used: record " + std::to_string(bad) +
                           " is torn; mend the record, or leave it out with --skip_damaged");
  }
  bench b;
  b.evaluated = numbers_source(100, {2});
  b.options.skip_damaged = true;
  b.master.work = {b.task(0, 4)};
  CHECK(b.run());
  CHECK(b.model.seen.size() == 4);
}

TEST_CASE("of a large minibatch only some records are tried") {
  bench b;
  b.model.capacity = b.options.minibatch_size = 1000;
  b.from = numbers_source(1000);
  b.evaluated = numbers_source(1000, {500});
  b.master.work = {b.task(0, 8)};
  CHECK(b.run());
  CHECK(b.model.seen.size() == 8);
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

TEST_CASE("of a task the last checked minibatch is kept, and so many of the newest") {
  edl::worker::kept_minibatch kept;
  edl::net::node node(peers::options());
  auto const keep = [&](std::uint32_t task, std::uint32_t index) {
    auto const what = std::make_shared<edl::worker::kept_minibatch::inputs>();
    *what = {.task = {0, task}, .index = index, .variables = {float(index)}, .rows = {}};
    kept.keep(what, 2);
  };
  auto const has = [&](std::uint32_t task, std::uint32_t index) {
    assignment check;
    check.task = {0, task};
    check.applied = index;
    float x = 0;
    try {
      return kept.fetch(node, 0, check, {&x, 1}, {}) && x == float(index);
    } catch (edl::net::call_error const&) {
      return false;
    }
  };
  keep(1, 3), keep(1, 5), keep(2, 7);
  CHECK_FALSE(has(1, 3));
  CHECK(has(1, 5));
  keep(3, 9);
  CHECK_FALSE(has(1, 5));
  CHECK((has(2, 7) && has(3, 9)));
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
    CHECK(o.wrong);
    CHECK(o.applied == 0);
  }
  CHECK(b.parameters.doubts == 2);
  CHECK(b.model.seen == std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3, 8, 9, 10, 11, 8, 9, 10, 11});
}

TEST_CASE("a pass without a loss is tried again on weights pulled anew, and its state goes nowhere") {
  bench b;
  b.model.not_finite = 1;
  b.master.work = {b.task(0, 4), b.task(4, 8)};
  CHECK(b.run());
  CHECK(b.parameters.doubts == 1);
  CHECK(b.model.seen == std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7});
  REQUIRE(b.parameters.pushes.size() == 2);
  for (auto const& p : b.parameters.pushes) CHECK(p.state_change == 1);  // of one pass
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
  CHECK(b.parameters.shown_at_pull ==
        std::vector<std::uint64_t>{0, 8, 0, 9});  // none until it has the older state
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
  CHECK(b.predicted_records == std::vector<std::uint64_t>{4, 5, 6, 7, 8, 9, 10, 11, 12, 13});
  CHECK(b.parameters.pushes.empty());
}

TEST_CASE("who gets the predictions may refuse those of one task, and the next one is given out") {
  bench b;
  b.refuses_outputs = true;
  b.master.work = {b.task(4, 8, task_kind::prediction), b.task(8, 12, task_kind::prediction)};
  CHECK(b.run());
  REQUIRE(b.master.outcomes.size() == 2);
  CHECK(b.master.outcomes[0].lease == 104);
  CHECK(b.master.outcomes[0].error == "no such class");
  CHECK(b.master.outcomes[1].lease == 108);
  CHECK(b.master.outcomes[1].error.empty());
  CHECK(b.predicted == std::vector<float>{8, 9, 10, 11});
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
                             edl::view<float> change,
                             std::span<edl::sparse::row_gradients const> rows) override {
      reported.push_back(master.outcomes.size());
      waiting = (waiting + 1) % 3;  // every third push applies those before it
      return scripted_parameters::push(m, v, g, change, rows);
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

TEST_CASE("words that feed looks up are counted with the minibatches they were trained in") {
  struct looking : counting_trainer {
    void feed(edl::example const& record, edl::data::batch& b, int row, edl::mode m) const override {
      static edl::features::loaded_lookup const known({"0", "1", "2"});
      counting_trainer::feed(record, b, row, m);
      known(std::to_string(record.integer("x")));
    }
  } model;
  bench b;
  b.options.evaluates = true;  // what is tried before counts nowhere
  b.master.work = {b.task(0, 10), b.task(0, 4, task_kind::evaluation)};
  struct lines final : edl::line_sink {
    std::string all;
    void write(std::string_view more) override { all += more; }
  };
  auto const log = std::make_shared<lines>();
  edl::worker::session s(b.options, model, b.rule, {&b.from, &b.from, nullptr}, b.master, b.parameters,
                         edl::logger(edl::severity::info, {}, {.to = log}));
  CHECK(s.run());
  CHECK(s.seen().trained().words == 10);
  CHECK(s.seen().trained().unknown == 7);
  CHECK(log->all.find("evaluated: 1 of 4 words") != std::string::npos);
}

TEST_CASE("the rows of a minibatch come with the variables, and by themselves where none are pulled") {
  struct with_rows : counting_trainer {
    edl::sparse::embedding_layout layout{
        .tables = {{"words", 2}}, .inputs = {{.table = 0, .first_id = 0, .ids = 1}}, .ids = 1};
    std::vector<float> of_rows = std::vector<float>(8, 0.5f);
    std::vector<float> given;  // the features of each pass
    edl::data::batch make_batch() const override { return edl::data::make_batch(4, 2, 0, 1, 1); }
    void feed(edl::example const& record, edl::data::batch& b, int row, edl::mode m) const override {
      counting_trainer::feed(record, b, row, m);
      b.ids[std::size_t(row)] = 10 * std::uint64_t(record.integer("x"));
    }
    edl::sparse::embedding_layout const& embeddings() const override { return layout; }
    edl::view<float> input_gradients() const override { return of_rows; }
    double train(edl::data::batch const& batch, std::uint64_t step,
                 edl::worker::gradients_ready const& ready) override {
      given.insert(given.end(), batch.features.begin(), batch.features.begin() + 2 * batch.rows);
      return counting_trainer::train(batch, step, ready);
    }
    edl::view<float> predict(edl::data::batch const& batch) override {
      given.insert(given.end(), batch.features.begin(), batch.features.begin() + 2 * batch.rows);
      return counting_trainer::predict(batch);
    }
  } model;
  struct keeping : scripted_parameters {
    std::vector<std::string> calls;
    void pull_rows(edl::sparse::minibatch_rows& rows) override {
      calls.push_back("rows");
      for (std::size_t i = 0; i < rows.ids(0).size(); ++i)
        rows.rows(0)[2 * i] = float(rows.ids(0)[i]), rows.rows(0)[2 * i + 1] = float(version);
    }
    std::uint64_t pull_with_rows(std::span<float> variables, edl::sparse::minibatch_rows& rows) override {
      pull_rows(rows);
      calls.back() = "both";
      return scripted_parameters::pull(variables);
    }
  } parameters;
  bench b;
  b.options.get_model_steps = 2;
  b.options.minibatch_size = 2;
  b.master.work = {b.task(0, 6)};
  edl::worker::session s(b.options, model, b.rule, {&b.from, nullptr, &b.from}, b.master, parameters,
                         edl::logger(edl::severity::critical));
  CHECK(s.run());
  CHECK(parameters.calls == std::vector<std::string>{"both", "rows", "both"});
  CHECK(model.given == std::vector<float>{0, 7, 10, 7, 20, 8, 30, 8, 40, 9, 50, 9});

  parameters.stale = 1;  // newer variables come with newer rows
  parameters.calls.clear(), model.given.clear();
  b.options.get_model_steps = 1;
  b.master.work = {b.task(0, 2), b.task(8, 10, task_kind::prediction)};
  edl::worker::session again(b.options, model, b.rule, {&b.from, nullptr, &b.from}, b.master, parameters,
                             edl::logger(edl::severity::critical));
  CHECK(again.run());
  CHECK(parameters.calls == std::vector<std::string>{"both", "both", "rows"});
  CHECK(model.given == std::vector<float>{0, 10, 10, 10, 0, 11, 10, 11, 80, 12, 90, 12});
}

}  // namespace session_test
