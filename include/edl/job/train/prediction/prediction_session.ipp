// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <typeinfo>
#include <utility>

#include "edl/compute/data/source.hpp"
#include "edl/compute/sparse/minibatch_rows.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/log.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/train/prediction/prediction_session.hpp"
#include "edl/job/train/prediction/saved_model.hpp"
#include "edl/job/train/setup/start.hpp"

namespace edl {

namespace detail {

/// The one feature whose text an error quotes, as a text that is no date; empty if there is none, or the
/// error names it.
inline std::string feature_with(example const& record, std::string_view error) {
  std::string found;
  for (std::size_t i = 0; i < record.size(); ++i) {
    std::string const name(record.name(i));
    if (error.find(fmt::format("'{}'", printable(name, 64))) != error.npos) return {};
    if (record.kind_of(i) != example::kind::strings || record.count(name) != 1) continue;
    auto const text = record.bytes(name);
    if (text.empty() || error.find(fmt::format("'{}'", printable(text, 64))) == error.npos) continue;
    if (!found.empty()) return {};
    found = name;
  }
  return found;
}

}  // namespace detail

struct prediction_batch::workspace {
  workspace(std::unique_ptr<worker::trainer> t)
      : trainer(std::move(t)), batch(trainer->make_batch()), rows(trainer->embeddings()) {}

  std::unique_ptr<worker::trainer> trainer;
  data::batch batch;
  sparse::minibatch_rows rows;
  std::array<example, 2> changed;
  int most = 0;         // capacity of the current batch
  view<float> outputs;  // empty: not computed yet
};

/// The state that a session shares with its batches.
struct prediction_batch::core {
  core(train::program const& p, std::string const& given, prediction_options const& o)
      : options(o),
        model_file(train::find_model(given, o.log,
                                     o.verify ? checkpoint::check::checksums : checkpoint::check::sizes, {})),
        path(model_file.path),
        program(train::trained_program(p, path, o.log)),
        model(program, path),
        facts(train::facts_at(path)) {
    if (!facts.missing.empty()) missing = data::read_missing_words(facts.missing).value_or(missing);
  }

  std::unique_ptr<workspace> make(int most) {
    auto fresh = std::make_unique<workspace>(
        program.make_trainer({.max_batch = most,
                              .on = worker::device_kind::cpu,
                              .device = {.threads = options.threads,
                                         .kernels = options.kernels,
                                         .precision = options.precision,
                                         .keep_kernels = true},
                              .predicts_with = model.variables(),
                              .frozen = program.adapted ? program.adapted->values() : view<float>()}));
    fresh->trainer->variables_written();
    return fresh;
  }

  static std::size_t size_class(int most) { return std::size_t(std::bit_width(unsigned(most - 1))); }

  std::unique_ptr<workspace> take(int most) {
    std::size_t const c = size_class(most);
    std::unique_ptr<workspace> got;
    {
      std::lock_guard const lock(mutex);
      if (auto& free = idle[c]; !free.empty()) {
        got = std::move(free.back());
        free.pop_back();
      }
    }
    if (!got) {
      got = make(int(std::size_t(1) << c));
      std::lock_guard const lock(mutex);
      idle[c].reserve(++made[c]);
    }
    got->most = most;
    return got;
  }

  void give(std::unique_ptr<workspace> w) {
    w->batch.rows = 0;
    w->outputs = {};
    std::lock_guard const lock(mutex);
    idle[size_class(w->batch.capacity)].push_back(std::move(w));
  }

  static constexpr std::size_t classes = 31;

  prediction_options options;
  train::found_model model_file;
  std::string path;
  train::program program;
  train::saved_model model;
  std::mutex mutex;
  std::array<std::vector<std::unique_ptr<workspace>>, classes> idle;  // by the logarithm of their capacity
  std::array<std::size_t, classes> made{};
  found_features const& features() {
    std::call_once(features_found, [&] {
      auto w = take(1);
      found = features_read_by(
          [&](example const& record) { w->trainer->feed(record, w->batch, 0, mode::prediction); },
          w->batch.feature_size, facts.inputs);
      give(std::move(w));
    });
    return found;
  }

  /// The record as a table of the training would have it: a text that --missing listed is an empty one, and
  /// no number at all.
  example const& as_trained(example const& given, std::array<example, 2>& memory) {
    example const* now = &given;
    for (std::size_t i = 0; i < given.size() && !missing.empty(); ++i) {
      std::string_view const name = given.name(i);
      if (given.kind_of(i) != example::kind::strings || given.count(name) != 1 ||
          std::ranges::find(missing, given.bytes(name)) == missing.end())
        continue;
      auto const& all = features().all;
      auto const of = std::ranges::find(all, name, &record_feature::name);
      example& next = memory[now == &memory[0] ? 1 : 0];
      detail::copy_but(*now, name, next, [&](example_builder& to) {
        if (of == all.end() || of->kind == example::kind::strings) to.bytes(name, std::string_view());
      });
      now = &next;
    }
    return *now;
  }

  record_facts facts;
  std::vector<std::string> missing;  // words of tables, if the training had its own
  std::once_flag features_found;
  found_features found;
};

EDL_INLINE prediction_batch::prediction_batch(std::shared_ptr<core> of, std::unique_ptr<workspace> memory)
    : core_(std::move(of)), memory_(std::move(memory)) {}
EDL_INLINE prediction_batch::prediction_batch(prediction_batch&&) noexcept = default;
EDL_INLINE prediction_batch& prediction_batch::operator=(prediction_batch&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(memory_, other.memory_);
  return *this;
}
EDL_INLINE prediction_batch::~prediction_batch() {
  if (memory_) core_->give(std::move(memory_));
}

EDL_INLINE void prediction_batch::add(example const& record) {
  workspace& w = *memory_;
  if (w.batch.rows == w.most) throw error(fmt::format("a batch for {} records is full", w.most));
  for (std::size_t i = 0; i < record.size(); ++i)
    if (auto const given = record.extents(i); given.size() > 1) {
      auto const& all = core_->features().all;
      auto const of = std::ranges::find(all, record.name(i), &record_feature::name);
      if (of != all.end()) check_extents(*of, given);
    }
  w.outputs = {};
  example const& fed = core_->as_trained(record, w.changed);
  try {
    w.trainer->feed(fed, w.batch, w.batch.rows, mode::prediction);
  } catch (data_error const& e) {
    std::string const of = typeid(e) == typeid(data_error) ? detail::feature_with(fed, e.what()) : "";
    if (of.empty()) throw;
    throw data_error(fmt::format("'{}': {}", printable(of, 64), e.what()));
  }
  ++w.batch.rows;
}

EDL_INLINE int prediction_batch::rows() const { return memory_->batch.rows; }

EDL_INLINE void prediction_batch::run() {
  workspace& w = *memory_;
  if (w.batch.rows == 0) return;
  if (w.rows.tables() > 0) {
    w.rows.begin(w.batch);
    core_->model.pull(w.rows);
    w.rows.fill(w.batch);
  }
  w.outputs = w.trainer->predict(w.batch);
}

EDL_INLINE view<float> prediction_batch::outputs() const { return memory_->outputs; }

EDL_INLINE view<float> prediction_batch::outputs(int row) const {
  std::size_t const n = core_->program.outputs, have = memory_->outputs.size() / n;
  if (row < 0 || std::size_t(row) >= have)
    throw error(fmt::format("the batch has predictions of {} records, but not of record {}", have, row));
  return memory_->outputs.subspan(std::size_t(row) * n, n);
}

EDL_INLINE view<float> prediction_batch::output(std::string_view name, int row) const {
  std::string names;
  for (model_output const& o : core_->program.heads) {
    if (o.name == name) return o.of(outputs(row));
    names += (names.empty() ? "" : ", ") + o.name;
  }
  throw error(fmt::format("the model has no output '{}'; it has {}", name, names));
}

EDL_INLINE void prediction_batch::fill_with_zeros() {
  data::batch& b = memory_->batch;
  std::ranges::fill(b.features, 0.0f);
  std::ranges::fill(b.ids, std::uint64_t(0));
  std::ranges::fill(b.weights, 0.0f);
  b.rows = memory_->most;
}

EDL_INLINE void prediction_batch::clear() {
  memory_->batch.rows = 0;
  memory_->outputs = {};
}

EDL_INLINE prediction_session::prediction_session(train::program const& p, std::string const& path,
                                                  prediction_options const& o)
    : core_(std::make_shared<prediction_batch::core>(p, path, o)) {}
EDL_INLINE prediction_session::~prediction_session() = default;

EDL_INLINE std::string const& prediction_session::path() const { return core_->path; }
EDL_INLINE std::uint64_t prediction_session::version() const { return core_->model.version(); }
EDL_INLINE train::settings prediction_session::hyperparameters() const {
  return train::values_of(core_->program.set);
}
EDL_INLINE std::vector<model_output> const& prediction_session::outputs() const {
  return core_->program.heads;
}
EDL_INLINE std::size_t prediction_session::output_size() const { return core_->program.outputs; }

EDL_INLINE std::vector<record_feature> const& prediction_session::inputs() const {
  return core_->features().all;
}
EDL_INLINE std::string const& prediction_session::inputs_unknown() const { return core_->features().unknown; }
EDL_INLINE std::vector<std::string> const& prediction_session::classes() const {
  return core_->facts.classes;
}

EDL_INLINE void prediction_session::warm_up(int most) const {
  for (int rows = 1;; rows = std::min(2 * rows, most)) {
    prediction_batch batch = take(rows);
    batch.fill_with_zeros();
    batch.run();
    if (rows == most) return;
  }
}

EDL_INLINE prediction_batch prediction_session::predict(std::span<example const> records) const {
  if (records.size() > std::size_t(1) << 30) throw error("too many records in one batch");
  prediction_batch batch = take(int(records.size()));
  for (std::size_t i = 0; i < records.size(); ++i) try {
      batch.add(records[i]);
    } catch (data_error const& e) {
      if (records.size() == 1) throw;
      throw data_error(fmt::format("record {}: {}", i, e.what()));
    }
  batch.run();
  return batch;
}

EDL_INLINE prediction_batch prediction_session::take(int most) const {
  if (most < 1 || most > 1 << 30)
    throw error(fmt::format("a batch for {} records: it is for 1 or more, below 2^30", most));
  return {core_, core_->take(most)};
}

}  // namespace edl
