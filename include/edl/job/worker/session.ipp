// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>
#include <utility>

#include "edl/base/net/status.hpp"
#include "edl/compute/nn/trace.hpp"
#include "edl/compute/optim/whole_variables.hpp"
#include "edl/core/digest.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/random.hpp"
#include "edl/job/worker/session.hpp"

namespace edl::worker {
namespace detail {

inline constexpr int most_stale_retries = 64;  // ElasticDL's DEFAULT_MAX_MINIBATCH_RETRY_NUM
inline constexpr auto poll_interval = std::chrono::milliseconds(100),
                      first_pause = std::chrono::milliseconds(5);

inline constexpr std::size_t most_reported = 100;  // damaged records, with a line for each

/// Adds the time that a network's layers and loss have taken so far to an account, or subtracts it.
inline void add_passes(time_account& to, nn::trace const* of, int sign) {
  if (!of) return;
  for (nn::trace::entry const& e : of->entries())
    if (e.depth == 0) (e.name == nn::trace::loss ? to.loss : to.layers) += sign * (e.first + e.later);
}

/// Shows others that a pass over a minibatch is in progress.
struct seen_pass {
  explicit seen_pass(progress& of) : shown(of) { ++shown.position; }
  seen_pass(seen_pass const&) = delete;
  ~seen_pass() {
    std::uint64_t const at = ++shown.position;
    invariant(at % 2 == 0, "a pass ends before the next one begins");
  }
  progress& shown;
};

}  // namespace detail

EDL_INLINE session::session(session_options const& o, trainer& model, update_rule const& rule, sources from,
                            master_link& master, parameter_link& parameters, logger log, prediction_sink sink)
    : options_(o),
      model_(model),
      rule_(rule, o.rated),
      from_(from),
      master_(master),
      parameters_(parameters),
      log_(std::move(log)),
      sink_(std::move(sink)),
      rows_(model.embeddings()),
      account_(model.profile() != nullptr) {
  std::size_t const state = model_.variables().size() - model_.gradients().size();
  state_before_.resize(state);
  change_.resize(state);
  ready_ = [this](std::size_t first) {
    invariant(at_work_.has_value(), "gradients become ready for a minibatch at work");
    parameters_.ready(*at_work_, model_.gradients(), first);
  };
  if (options_.trains) {
    auto const records = [](data::source const* of) {
      std::uint64_t n = 0;
      if (of)
        for (data::shard const& s : of->shards()) n += s.records;
      return n;
    };
    // The final evaluation reads the records only once.
    std::string const kept = model_.expect(options_.one_pass ? 0 : records(from_.training),
                                           options_.evaluates ? records(from_.evaluation) : 0);
    if (!kept.empty()) log_.info(kept);
  }
  if (options_.clip.any() && model_.gradients_to_change().size() != model_.gradients().size())
    throw usage_error("--clip_norm and --clip_value work on a processor only: add --device=cpu");
  if (options_.get_model_steps > 1)
    for (std::size_t i = 0; i < rule_.slots().size(); ++i)
      slots_.emplace_back(model_.gradients().size(), rule_.initial(i));
  check();
}

EDL_INLINE session::~session() = default;

EDL_INLINE session::lane& session::here() {
  invariant(turn_ < lanes_.size(), "the active lane exists");
  return lanes_[turn_];
}

// Invariants before and after each minibatch.
EDL_INLINE void session::check() const {
  invariant(lanes_.size() == own_.count, "a session has as many lanes as the worker owns");
  invariant(turn_ <= lanes_.size(), "the next lane exists, or a step is due");
  invariant(state_before_.size() == change_.size(),
            "a change of the state has a value for each element of the state");
  invariant(steps_since_pull_ >= -1 && steps_since_pull_ <= options_.get_model_steps,
            "no more local steps are made between two pulls than --get_model_steps allows");
  invariant(losses_.size() <= losses_shown, "the newest losses are as many as are shown");
  invariant(passes_.size() < passes_measured, "passes are measured in rounds");
  invariant(slots_.empty() || slots_.size() == rule_.slots().size(),
            "local steps have the slots that the rule wants");
}

EDL_INLINE int session::loader_threads() const {
  return options_.loader_threads > 0 ? options_.loader_threads : model_.idle_threads();
}

EDL_INLINE data::loader& session::loader_of(lane& in, assignment const& a) {
  data::source const* const from = from_.of(a.kind);
  if (!from) throw error("the master leased a task of a kind that this command line has no records for");
  if (a.shard >= from->shards().size() || from->shards()[a.shard].name != a.shard_name ||
      from->shards()[a.shard].records < a.end || a.begin >= a.end)
    throw data_error(
        fmt::format("shard {} ('{}', records {} to {}) is not in the records that this worker sees; do all "
                    "processes read the same files?",
                    a.shard, a.shard_name, a.begin, a.end));
  auto& loader = in.loaders[from];
  if (!loader) {
    data::loader_options const options{.threads = loader_threads(),
                                       .minibatch_size = options_.minibatch_size,
                                       .seed = options_.seed,
                                       .shuffle = options_.shuffle,
                                       .skip_damaged = options_.skip_damaged,
                                       .times = account_.counts() ? &account_.loading : nullptr};
    loader = std::make_unique<data::loader>(
        *from, options, [this] { return model_.make_batch(); },
        [this](example const& record, data::batch& b, int row, mode m) {
          auto const before = features::lookups_of_thread();
          model_.feed(record, b, row, m);
          auto const after = features::lookups_of_thread();
          b.words += after.words - before.words, b.unknown += after.unknown - before.unknown;
        },
        [this](data::batch& b) { return model_.has(b); });
  }
  return *loader;
}

EDL_INLINE bool session::run() {
  time_account::scope const all(account_, time_account::other);
  std::optional<std::string> failure;  // of the lease at work
  for (;;) {
    if (stopping_ && stopping_()) {
      hand_back();
      return false;
    }
    try {
      if (failure) end(*std::exchange(failure, std::nullopt));
      {
        time_account::scope const counts(account_, time_account::tasks);
        rest();
        lease_ahead();
        if (parameters_.pending() == 0) turn_ = 0;  // a step begins with the first lane
        bool const waits =
            !next_lane() || (rests() && here().leases.front().task.kind == task_kind::training);
        if (waits) {
          if (finished_ && unreported_.empty() && parameters_.pending() == 0) {
            tell_words();
            return true;
          }
          idle();
          continue;
        }
      }
      lease& l = here().leases.front();
      if (l.next >= l.until) {
        end({});
        continue;
      }
      data::loader& loader = loader_of(here(), l.task);
      data::batch* const b = [&] {
        time_account::scope const counts(account_, time_account::records);
        // A loader without threads uses the compute threads, which would only wait for the next minibatch.
        if (loader_threads() == 0 && !loader.ready()) model_.share([&](int) { loader.fill_next(); });
        return loader.next();
      }();
      if (!b) throw error("the loader of records ended by itself");
      invariant(b->identity.ticket == l.ticket, "the loader gives the minibatches of the active lease");
      try {
        work(l, *b);
      } catch (...) {
        loader.recycle(b);
        throw;
      }
      loader.recycle(b);
      // A lane that lost its lease during the minibatch keeps its turn for its next lease.
      if (std::exchange(turn_is_over_, false)) ++turn_;
      check();
    } catch (rolled_back const& e) {
      start_again(e);
    } catch (interrupted const&) {
      hand_back();
      return false;
    } catch (data_error const& e) {
      if (turn_ >= lanes_.size() || here().leases.empty()) throw;
      failure = e.what();
    }
  }
}

EDL_INLINE void session::lease_ahead() {
  if (lane_range const now = parameters_.lanes(); now != own_) {
    drop_leases();
    own_ = now;
    lanes_.resize(now.count);
  }
  check();
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lane& in = lanes_[i];
    invariant(in.leases.size() <= 2, "a lane leases one task ahead");
    while (in.leases.size() < 2 && !finished_ && clock::now() >= in.ask_again) {
      assignment const a = master_.next(own_.first + std::uint32_t(i));
      in.rests = a.rests;
      if (a.kind == task_kind::finished) {
        finished_ = true;
      } else if (a.kind == task_kind::wait) {
        // Everybody pauses meanwhile. Begin with short intervals, so that a short evaluation costs little,
        // and lengthen them, so that a long one causes few requests.
        in.pause = a.rests ? std::clamp(2 * in.pause, detail::first_pause, detail::poll_interval)
                           : detail::poll_interval;
        in.ask_again = clock::now() + in.pause;
      } else {
        begin(in, a);
      }
    }
  }
}

// Advances to the next lane that has work. Returns false if no lane has, or if pushed minibatches wait for a
// lane that turns out to have none.
EDL_INLINE bool session::next_lane() {
  for (; turn_ < lanes_.size(); ++turn_)
    if (!here().leases.empty()) return true;
  turn_ = 0;
  if (lanes_.size() > 1 && parameters_.pending() > 0) return false;
  for (; turn_ < lanes_.size(); ++turn_)
    if (!here().leases.empty()) return true;
  turn_ = 0;
  return false;
}

EDL_INLINE void session::idle() {
  auto until = clock::now() + detail::poll_interval;
  for (lane const& in : lanes_) until = std::min(until, in.ask_again);
  auto const wait = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
  auto const none = std::chrono::milliseconds(0);
  // Do not take part in the others' steps now. Once they are allowed the next step, it needs this worker's
  // contribution.
  if (rests())
    std::this_thread::sleep_for(std::max(wait, none));
  else
    parameters_.idle(parameters_.pending() > 0 ? none : std::max(wait, none));
  report_applied();
}

EDL_INLINE void session::begin(lane& in, assignment const& a) {
  std::uint64_t const records = a.end - a.begin, size = std::uint64_t(options_.minibatch_size);
  lease l{.task = a,
          .ticket = ++ticket_,
          .minibatches = std::uint32_t((records + size - 1) / size),
          .next = a.applied};
  l.until = a.until > 0 ? std::min(a.until, l.minibatches) : l.minibatches;
  invariant(l.until <= l.minibatches, "a lease ends within its task");
  bool const training = a.kind == task_kind::training;
  if (a.kind == task_kind::evaluation) l.totals.resize(model_.totals());
  in.leases.push_back(std::move(l));
  lease& added = in.leases.back();
  try {
    if (training) try_evaluation();
    data::loader& loader = loader_of(in, a);
    if (training && a.resumed) added.next = parameters_.position(a.task, added.minibatches);
    data::work const left{.task = a.task,
                          .shard = a.shard,
                          .begin = a.begin,
                          .end = a.end,
                          .m = mode_of(a.kind),
                          .first_minibatch = added.next,
                          .ticket = added.ticket,
                          .end_minibatch = added.until};
    added.skipped = loader.damaged_before(left);
    if (added.next < added.until) loader.submit(left);
  } catch (data_error const& e) {
    // The failed lease is not the one in work: report it here, and the others continue.
    invariant(in.leases.back().ticket == added.ticket && added.ticket == ticket_,
              "the lease that cannot begin is the newest");
    bool const refused = training && tried_evaluation_ && !tried_evaluation_->empty();
    master_.report({.lease = a.lease, .error = e.what(), .applied = added.next, .refused = refused});
    in.leases.pop_back();
  }
}

// Tries some records at the beginning and end of the evaluation's data before training, so that errors show
// up early.
EDL_INLINE void session::try_evaluation() {
  data::source const* const from = from_.evaluation;
  if (!from) return;
  if (!tried_evaluation_) {
    tried_evaluation_.emplace();
    data::loader once(
        *from,
        {.threads = 0,
         .ring = 2,
         .minibatch_size = options_.minibatch_size,
         .skip_damaged = options_.skip_damaged},
        [this] { return model_.make_batch(); },
        [this](example const& record, data::batch& b, int row, mode m) { model_.feed(record, b, row, m); });
    constexpr std::uint64_t most_tried = 64;  // a minibatch may be thousands of pictures
    auto const some = [&](std::size_t shard, bool last) {
      std::uint64_t const all = from->shards()[shard].records,
                          n = std::min({all, std::uint64_t(options_.minibatch_size), most_tried});
      if (n == 0 || !tried_evaluation_->empty()) return;
      once.submit(
          {.shard = shard, .begin = last ? all - n : 0, .end = last ? all : n, .m = mode::evaluation});
      data::batch* const b = once.next();
      invariant(b != nullptr, "a loader that was given work gives a minibatch");
      if (!b->error.empty()) *tried_evaluation_ = "the evaluation's data cannot be used: " + b->error;
      once.recycle(b);
    };
    if (!from->shards().empty()) some(0, false), some(from->shards().size() - 1, true);
  }
  if (!tried_evaluation_->empty()) throw data_error(*tried_evaluation_);
}

EDL_INLINE void session::work(lease& l, data::batch& b) {
  invariant(&l == &here().leases.front(), "the first lease of a lane is at work");
  invariant(l.next < l.until, "a lease at work has a minibatch left");
  invariant(b.rows >= 0 && b.rows <= options_.minibatch_size, "a batch has no more rows than a minibatch");
  if (!b.error.empty()) {
    end(b.error, false, b.refused);
    return;
  }
  time_account::scope const counts(account_, l.task.kind == task_kind::training     ? time_account::training
                                             : l.task.kind == task_kind::evaluation ? time_account::evaluation
                                             : l.task.kind == task_kind::prediction ? time_account::prediction
                                                                                    : time_account::other);
  if (l.task.kind == task_kind::training) {
    if (!train(l, b)) return;
  } else if (l.task.kind == task_kind::check) {
    try {
      check(l, b);
    } catch (net::call_error const& e) {
      log_.debug(e.what());  // the inputs are no longer kept, or their worker is lost
      give_back();
      return;
    }
  } else if (l.task.kind == task_kind::evaluation) {
    if (frozen_ != l.task.version) {
      parameters_.pull_frozen(l.task.version, model_.variables());
      model_.variables_written();
      frozen_ = l.task.version;
    }
    pull_rows(b);
    detail::seen_pass const shown(seen_);
    model_.evaluate(b, l.totals);
    if (inspect_) inspect_(b);
    evaluated_.words += b.words, evaluated_.unknown += b.unknown;
  } else {
    if (steps_since_pull_ < 0)
      pull(b);
    else
      pull_rows(b);
    detail::seen_pass const shown(seen_);
    view<float> const outputs = model_.predict(b);
    l.outputs.insert(l.outputs.end(), outputs.begin(), outputs.end());
    l.records.insert(l.records.end(), b.records.begin(), b.records.begin() + b.rows);
    predicted_.words += b.words, predicted_.unknown += b.unknown;
  }
  invariant(&l == &here().leases.front(), "a lease that goes on is still the first of its lane");
  ++l.next;
  if (b.skipped > 0) {
    l.skipped += std::uint64_t(b.skipped);
    tell_damage(b);
  }
  if (l.next >= l.until) end({});
}

// The master logs the words of training, for all workers.
EDL_INLINE void session::tell_words() const {
  for (auto const& [what, n] : {std::pair{"evaluated", evaluated_}, {"predicted", predicted_}})
    if (n.words > 0) log_.info(fmt::format("{}: {}", what, to_text(n)));
}

// Logs each message once: the same record returns in every epoch.
EDL_INLINE void session::tell_damage(data::batch const& b) {
  for (std::string const& why : b.damage) {
    if (reported_damage_.size() > detail::most_reported || !reported_damage_.insert(why).second) continue;
    log_.warning(reported_damage_.size() > detail::most_reported
                     ? "further damaged records are skipped without a message"
                     : why + "; it is left out");
  }
}

// Pulls the newest variables, and the rows that the minibatch needs.
EDL_INLINE void session::pull(data::batch& b) {
  time_account::scope const counts(account_, time_account::parameters);
  if (auto const here = parameters_.in_place()) {
    // The arena that holds the variables also computes with them: nothing to copy.
    model_.resume();
    version_ = *here;
    pull_rows(b);
  } else {
    if (rows_.tables() == 0) {
      version_ = parameters_.pull(model_.variables());
    } else {
      rows_.begin(b);
      version_ = parameters_.pull_with_rows(model_.variables(), rows_);
      model_.give_rows(b, rows_);
    }
    model_.variables_written();
    std::ranges::copy(model_.variables().last(state_before_.size()), state_before_.begin());
  }
  frozen_.reset();
  steps_since_pull_ = 0;
  seen_.version = version_;
}

EDL_INLINE void session::pull_rows(data::batch& b) {
  if (rows_.tables() == 0) return;
  time_account::scope const counts(account_, time_account::parameters);
  rows_.begin(b);
  parameters_.pull_rows(rows_);
  model_.give_rows(b, rows_);
}

EDL_INLINE void session::clip_gradients() {
  clipped_.assign(1, model_.gradients_to_change());
  for (element_range const r : options_.fixed)  // what is not trained counts in no norm
    std::ranges::fill(clipped_[0].subspan(r.first, r.size()), 0.0f);
  for (std::size_t t = 0; t < rows_.tables(); ++t) clipped_.push_back(rows_.gradients(t));
  clip(options_.clip, clipped_);
}

EDL_INLINE double session::pass(data::batch const& b, minibatch_key const& of, gradients_ready const& ready) {
  detail::seen_pass const shown(seen_);
  auto const since = clock::now();
  detail::add_passes(account_, model_.profile(), -1);
  double const loss = model_.train(b, mix(mix(of.task.epoch, of.task.index), of.index), ready);
  detail::add_passes(account_, model_.profile(), 1);
  if (b.rows == options_.minibatch_size)
    passes_.push_back(std::chrono::duration<float>(clock::now() - since).count() / float(b.rows));
  if (passes_.size() == passes_measured) {
    auto const middle = passes_.begin() + passes_measured / 2;
    std::nth_element(passes_.begin(), middle, passes_.end());
    seen_.pass = *middle;
    passes_.clear();
  }
  invariant(passes_.size() < passes_measured, "passes are measured in rounds");
  std::span<float> const state = model_.variables().last(change_.size());
  for (std::size_t i = 0; i < change_.size(); ++i) change_[i] = state[i] - state_before_[i];
  return loss;
}

EDL_INLINE bool session::train(lease& l, data::batch& b) {
  minibatch_key const key{l.task.task, l.next, l.minibatches};
  double loss = 0;
  pushed result;
  std::optional<checked_minibatch> checked;
  std::shared_ptr<kept_minibatch::inputs const> inputs;
  auto const later = lanes_.begin() + std::ptrdiff_t(turn_) + 1;
  parameters_.turn(std::uint32_t(turn_),
                   std::all_of(later, lanes_.end(), [](lane const& in) { return in.leases.empty(); }));
  bool doubted = false;
  for (int attempt = 0;; ++attempt) {
    bool const begins_round = options_.rounds && parameters_.pending() == 0;
    if (steps_since_pull_ < 0 || steps_since_pull_ >= options_.get_model_steps || frozen_ || begins_round)
      pull(b);
    else
      pull_rows(b);
    report_applied();
    invariant(steps_since_pull_ >= 0 && !frozen_,
              "a minibatch is trained on variables that were pulled for it");
    at_work_.emplace(key, std::uint32_t(b.rows), std::uint32_t(b.skipped), l.task.rate);
    sample const told = sample_of_next();
    checked.reset(), inputs.reset();
    if (told != sample::none)
      checked = {.index = key.index, .version = version_, .weights = digest(view<float>(model_.variables()))};
    if (told == sample::whole) inputs = copy_inputs(key);
    // Clipping needs the whole gradient, so none of it may be sent before.
    loss = pass(b, key, options_.clip.any() ? gradients_ready() : ready_);
    if (!std::isfinite(loss)) {
      steps_since_pull_ = -1;  // the pass has corrupted the carried state
      if (options_.rounds)     // which goes to the servers with the steps before it
        std::ranges::copy(state_before_, model_.variables().last(state_before_.size()).begin());
      // If a bit has flipped in the weights here, another pull repairs them: try once more.
      if (!std::exchange(doubted, true)) {
        parameters_.doubt();
        continue;
      }
      end(fmt::format("the loss is {} at version {} of the model (records {} to {} of {})", loss, version_,
                      l.task.begin, l.task.end, l.task.shard_name),
          true);
      return false;
    }
    if (std::exchange(doubted, false))
      log_.warning(
          fmt::format("the loss of a minibatch was not finite, and with the weights pulled again it is {} "
                      "(records {} to {} of {}): the memory of this machine may be faulty",
                      loss, l.task.begin, l.task.end, l.task.shard_name));
    auto const of_rows = model_.row_gradients(b, rows_);
    if (options_.clip.any()) clip_gradients();
    invariant(!inputs || checked, "inputs are kept only for a minibatch whose digests are reported");
    if (inputs) checked->gradient = result_digest(loss, of_rows);
    {
      time_account::scope const counts(account_, time_account::step);
      result = parameters_.push(*at_work_, version_, model_.gradients(), change_, of_rows);
    }
    turn_is_over_ = !result.stale;
    if (turn_is_over_) break;
    // Other pushes came first: compute the same minibatch again on the newer model.
    steps_since_pull_ = -1;
    if (attempt == detail::most_stale_retries) {
      // Others are always faster: leave the minibatch to one of them.
      log_.warning(
          fmt::format("minibatch {} of task {} was rejected as stale {} times and goes to another worker; "
                      "raise --sync_version_tolerance or --grads_to_wait",
                      key.index, key.task.index, attempt + 1));
      give_back();
      return false;
    }
  }
  if (checked) l.checked.push_back(*checked);
  // A third worker may ask for the inputs several tasks later. Each copy includes all variables.
  if (inputs) kept_->keep(inputs, std::min<std::uint64_t>(1 + 80 / options_.checks.period, 3));
  report_applied();
  ++steps_since_pull_;
  if (options_.get_model_steps > 1) local_step(l.task.rate);
  seen_.version = std::max(result.version, version_);
  seen_.records += std::uint64_t(b.rows);
  seen_.add({loss, 1, std::uint64_t(b.rows), b.words, b.unknown});
  losses_.push_back(float(loss));
  if (losses_.size() > losses_shown) losses_.pop_front();
  seen_.loss = float(std::accumulate(losses_.begin(), losses_.end(), 0.0) / double(losses_.size()));
  if (result.version >= next_loss_line_) {
    log_.info(fmt::format("Loss = {}, steps = {}", float(loss), result.version));
    next_loss_line_ = (result.version / options_.log_loss_steps + 1) * options_.log_loss_steps;
  }
  if (after_step_) after_step_(seen_.version, loss, b.rows);
  return true;
}

// ---- Checks ----

EDL_INLINE void session::check_with(kept_minibatch& kept, fetch_inputs fetch) {
  if (model_.gradients_to_change().size() != model_.gradients().size())
    throw usage_error("--verify_gradients works on a processor only: add --device=cpu");
  kept_ = &kept;
  fetch_ = std::move(fetch);
}

EDL_INLINE session::sample session::sample_of_next() const {
  auto const& [period, common, weights] = options_.checks;
  if (!kept_ || period == 0 || turn_ != 0) return sample::none;
  if ((common ? version_ : seen_.trained().minibatches + 1) % period == 0) return sample::whole;
  return common && weights > 0 && version_ % weights == 0 ? sample::weights : sample::none;
}

EDL_INLINE std::shared_ptr<kept_minibatch::inputs const> session::copy_inputs(minibatch_key const& of) {
  auto const copy = std::make_shared<kept_minibatch::inputs>();
  copy->task = of.task;
  copy->index = of.index;
  copy->variables.assign(model_.variables().begin(), model_.variables().end());
  for (std::size_t t = 0; t < rows_.tables(); ++t)
    copy->rows.insert(copy->rows.end(), rows_.rows(t).begin(), rows_.rows(t).end());
  return copy;
}

EDL_INLINE std::uint64_t session::result_digest(double loss,
                                                std::span<sparse::row_gradients const> of_rows) const {
  std::uint64_t all = digest(view<double>(&loss, 1));
  all = digest(view<float>(change_), digest(model_.gradients(), all));
  for (sparse::row_gradients const& t : of_rows) all = digest(t.gradients, digest(t.ids, all));
  return all;
}

EDL_INLINE void session::check(lease& l, data::batch& b) {
  if (!fetch_)
    throw error("the master requests a check, but this worker was started without --verify_gradients");
  std::vector<std::span<float>> rows;
  if (rows_.tables() > 0) rows_.begin(b);
  for (std::size_t t = 0; t < rows_.tables(); ++t) rows.push_back(rows_.rows(t));
  steps_since_pull_ = -1;
  frozen_.reset();
  checked_minibatch& c = l.checked.emplace_back(checked_minibatch{.index = l.next});
  if (!fetch_(l.task, model_.variables(), rows)) return;  // it has other records, so the results cannot match
  model_.variables_written();
  std::ranges::copy(model_.variables().last(state_before_.size()), state_before_.begin());
  if (rows_.tables() > 0) model_.give_rows(b, rows_);
  c.weights = digest(view<float>(model_.variables()));
  double const loss = pass(b, {l.task.task, l.next, l.minibatches}, {});
  auto const of_rows = model_.row_gradients(b, rows_);
  if (options_.clip.any()) clip_gradients();
  c.gradient = result_digest(loss, of_rows);
}

// The place of the next local step in the schedule. A round's steps follow each other there.
EDL_INLINE std::uint64_t session::scheduled_step() const {
  return options_.rounds ? version_ + std::uint64_t(steps_since_pull_ - 1) : version_;
}

EDL_INLINE void session::local_step(float rate) {
  invariant(slots_.size() == rule_.slots().size(), "local steps have the slots that the rule wants");
  std::vector<std::span<float>> slots(slots_.size());
  view<float> const gradients = model_.gradients();
  for_each_outside(options_.fixed, {0, gradients.size()}, [&](element_range trained) {
    for (std::size_t i = 0; i < slots.size(); ++i)
      slots[i] = std::span(slots_[i]).subspan(trained.first, trained.size());
    rule_.apply_at(trained.first, model_.variables().subspan(trained.first, trained.size()),
                   gradients.subspan(trained.first, trained.size()), slots,
                   rate * rule_.learning_rate(scheduled_step()), local_steps_);
  });
  ++local_steps_;
  model_.variables_written();
  std::ranges::copy(model_.variables().last(state_before_.size()), state_before_.begin());
}

EDL_INLINE void session::end(std::string const& error, bool wrong, bool refused) {
  if (!error.empty()) end_round();
  lane& in = here();
  invariant(!in.leases.empty(), "a lease that ends was held");
  // Remove the lease from the queue first, so that a failure below is not reported for it again.
  lease l = std::move(in.leases.front());
  in.leases.pop_front();
  std::string worst, failed = error;
  // An exception of the author's code here belongs to this lease, not to the next one.
  if (error.empty()) try {
      if (l.task.kind == task_kind::prediction && sink_) sink_(l.task, l.outputs, l.records);
      if (l.task.kind == task_kind::evaluation && inspected_) worst = inspected_(l.task.task);
    } catch (data_error const& e) {
      failed = e.what();
    }
  if (!failed.empty()) {
    if (auto const it = in.loaders.find(from_.of(l.task.kind)); it != in.loaders.end())
      it->second->cancel(l.ticket);
    log_.debug(failed);  // the master logs it
  }
  time_account::scope const counts(account_, time_account::tasks);
  in.ask_again = {};  // the next task may have waited for this one
  outcome const o{.lease = l.task.lease,
                  .error = failed,
                  .skipped = l.skipped,
                  .metrics = l.totals,
                  .applied = l.next,
                  .trained = seen_.trained(),
                  .task = l.task.task.index,
                  .worst = std::move(worst),
                  .checked = l.checked,
                  .wrong = wrong,
                  .refused = refused};
  if (failed.empty() && l.task.kind == task_kind::training && parameters_.pending() > 0)
    unreported_.push_back(o);
  else if (!master_.report(o) && l.task.kind != task_kind::check)
    log_.warning(fmt::format("the master had given task {} of epoch {} to another worker", l.task.task.index,
                             l.task.task.epoch));
}

EDL_INLINE void session::report_applied() {
  if (parameters_.pending() > 0) return;
  time_account::scope const counts(account_, time_account::tasks);
  for (outcome const& o : std::exchange(unreported_, {}))
    if (!master_.report(o)) log_.warning("the master had given a task that is done to another worker");
}

// Leases are returned with what has been applied of them.
EDL_INLINE void session::end_round() {
  if (!options_.rounds) return;
  parameters_.end_round();
  report_applied();
}

EDL_INLINE void session::give_back() {
  end_round();
  invariant(!here().leases.empty(), "a returned lease was held");
  lease const l = std::move(here().leases.front());
  here().leases.pop_front();
  loader_of(here(), l.task).cancel(l.ticket);
  master_.report({.lease = l.task.lease, .returned = true, .applied = l.next});
}

EDL_INLINE void session::hand_back() {
  try {
    end_round();
  } catch (rolled_back const&) {
    return drop_leases();  // they are void
  }
  // Return the last first: the master puts each at the front, so another worker gets them in order.
  for (lane& in : lanes_)
    for (; !in.leases.empty(); in.leases.pop_back())
      master_.report(
          {.lease = in.leases.back().task.lease, .returned = true, .applied = in.leases.back().next});
}

EDL_INLINE bool session::rests() const {
  return std::ranges::any_of(lanes_, [](lane const& in) { return in.rests; });
}

// Returns the leases that were taken ahead, so that the master decides when the next step may be made.
EDL_INLINE void session::rest() {
  auto const at = parameters_.rests_at();
  if (!at || at == rested_at_) return;
  invariant(parameters_.pending() == 0, "a worker that rests has pushed nothing for the next step");
  rested_at_ = at;
  for (lane& in : lanes_)
    for (lease const& l : in.leases)
      for (auto& [from, loader] : in.loaders) loader->cancel(l.ticket);
  hand_back();
  drop_leases();
}

EDL_INLINE void session::drop_leases() {
  for (lane& in : lanes_) {
    for (lease const& l : in.leases)
      for (auto& [from, loader] : in.loaders) loader->cancel(l.ticket);
    in.leases.clear();
    in.ask_again = {};
    in.rests = false;
    in.pause = {};
  }
  turn_ = 0;
  turn_is_over_ = false;
  check();
}

EDL_INLINE void session::start_again(rolled_back const& why) {
  log_.log(why.planned ? severity::info : severity::warning,
           fmt::format("the lease is void: {}", why.what()));
  unreported_.clear();
  drop_leases();
  finished_ = false;  // completed tasks may have to be repeated
  rested_at_.reset();
  steps_since_pull_ = -1;
  next_loss_line_ = 0;
  frozen_.reset();
  seen_.version = 0;  // until it has the state that the job goes on from
}

}  // namespace edl::worker
