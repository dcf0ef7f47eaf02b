// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/job/worker/session.hpp"

namespace scripted_session {

using edl::task_kind;
using edl::worker::assignment;
using edl::worker::outcome;

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
  int capacity = 4;    // records of a minibatch
  int not_finite = 0;  // so many passes from now have no loss

  edl::data::batch make_batch() const override { return edl::data::make_batch(capacity, 1, 0, 1); }
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
    a.kind = task_kind::finished;
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
  edl::worker::progress const* progress = nullptr;
  std::vector<std::uint64_t> shown_at_pull;  // the version that heartbeats would report
  struct push_made {
    edl::minibatch_key key;
    std::uint64_t version;
    float state_change;
  };
  std::vector<push_made> pushes;
  std::uint64_t version = 7, frozen = 0;
  int pulls = 0, doubts = 0, stale = 0, roll_back_at = -1;
  std::vector<edl::minibatch_key> announced;  // while they were computed
  std::uint32_t held = 0;                     // what the servers have of a task that was begun

  std::uint64_t pull(std::span<float> variables) override {
    if (progress) shown_at_pull.push_back(progress->version);
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
                           edl::view<float> change, std::span<edl::sparse::row_gradients const>) override {
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
  void doubt() override { ++doubts; }
};

struct bench {
  edl::worker::session_options options{.minibatch_size = 4, .shuffle = false};
  numbers_source from{100}, evaluated{100};
  counting_trainer model;
  edl::rule<edl::sgd> rule{edl::sgd{.learning_rate = 0.5f}};
  scripted_master master;
  scripted_parameters parameters;
  std::vector<float> predicted;
  std::vector<std::uint64_t> predicted_records;
  bool refuses_outputs = false;  // of the next task

  assignment task(std::uint64_t begin, std::uint64_t end, task_kind what = task_kind::training) {
    assignment a;
    a.kind = what;
    a.lease = 100 + begin;
    a.task = {0, std::uint32_t(begin)};
    a.shard_name = "numbers";
    a.begin = begin, a.end = end;
    return a;
  }
  bool run(std::function<bool()> stop = {}) {
    edl::worker::session s(options, model, rule, {&from, &evaluated, &from}, master, parameters,
                           edl::logger(edl::severity::critical),
                           [this](assignment const&, edl::view<float> y, edl::view<std::uint64_t> records) {
                             if (std::exchange(refuses_outputs, false))
                               throw edl::data_error("no such class");
                             predicted.insert(predicted.end(), y.begin(), y.end());
                             predicted_records.insert(predicted_records.end(), records.begin(),
                                                      records.end());
                           });
    s.stop_when(std::move(stop));
    parameters.progress = &s.seen();
    bool const ended = s.run();
    parameters.progress = nullptr;
    return ended;
  }
};

}  // namespace scripted_session
