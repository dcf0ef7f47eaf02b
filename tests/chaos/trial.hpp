// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/job.hpp"
#include "chaos/fault.hpp"
#include "chaos/handle.hpp"
#include "chaos/judged.hpp"
#include "chaos/mischief.hpp"
#include "chaos/outcome.hpp"
#include "chaos/plan.hpp"
#include "chaos/subject.hpp"
#include "chaos/watcher.hpp"

namespace chaos {

/// What an undisturbed job of a plan's configuration results in; such jobs run once.
class reference {
 public:
  struct result {
    std::string model;
    double accuracy = 0;
    judged_result judged;
  };

  result const& of(plan const& p, std::string const& program);

 private:
  std::map<std::string, result> known_;
};

/// One job, and everything that happens to it.
class trial {
 public:
  trial(plan p, reference* compare, std::string program = EDL_TINY)
      : plan_(std::move(p)), compare_(compare), program_(std::move(program)) {}

  outcome run() {
    auto const began = std::chrono::steady_clock::now();
    {
      job::options o{.env = {{"TINY_DELAY_US", "500"}}, .program = program_};
      // About as long as the steps between two: many a fault comes while a version is evaluated.
      if (plan_.judged) o.env.emplace_back("TINY_EVALUATION_DELAY_US", "400");
      std::unique_ptr<subject> j;
      if (plan_.by_hand)
        j = std::make_unique<crew>(command(plan_, dir_), o, plan_);
      else
        j = std::make_unique<launched_job>(command(plan_, dir_), o);
      watcher seen(j->log_path());
      job_ = j.get(), seen_ = &seen;
      disturb();
      int const code = j->wait(300s);
      if (code != 0) fail("exit code " + std::to_string(code));
      // Whoever is cut off hears of the end by its silence.
      if (!j->nothing_left(plan_.by_hand ? 60s : 2s)) fail("processes of the job still run");
      for (std::string const& why : j->failed(hit_)) fail(why);
      seen.read();
      out_.log = j->log();
      if (code == 0) check();
      for (std::size_t i = 0; i < out_.faults.size(); ++i) {
        auto const next = i + 1 < out_.faults.size() ? out_.faults[i + 1].at : wall_clock::now();
        out_.samples.push_back(
            measure(seen.lines(), out_.faults[i], next, plan_.allreduce, plan_.strategy()));
      }
    }
    out_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return std::move(out_);
  }

  /// The command line of a plan's job, which writes into a directory of its own.
  static std::vector<std::string> command(plan const& p, job::scratch const& dir) {
    std::vector<std::string> more{"--num_epochs=" + std::to_string(p.epochs),
                                  "--num_workers=" + std::to_string(p.workers),
                                  "--validation_data=" + job::data().validation,
                                  "--checkpoint_dir=" + dir / "checkpoints",
                                  "--checkpoint_steps=10",
                                  "--keep_checkpoint_max=3",
                                  "--output=" + dir / "model",
                                  "--log_loss_steps=1",
                                  "--num_threads=1",
                                  "--deterministic",
                                  "--job_name=chaos"};
    if (p.allreduce)
      more.insert(more.end(), {"--distribution_strategy=AllreduceStrategy", "--small_tables_mib=0",
                               "--table_copies=" + std::to_string(p.copies)});
    else
      more.insert(more.end(), {"--num_ps_pods=" + std::to_string(p.servers),
                               "--ps_replicas=" + std::to_string(p.copies)});
    // Whoever is harmed just before the end does not hear of it, and waits so long for another master.
    if (p.proxied) more.push_back("--master_timeout=30");
    if (p.plain) more.push_back("--transport_security=none");
    if (p.fixed) more.push_back("--fixed_global_batch");
    if (p.judged)
      more.insert(more.end(), {"--evaluation_steps=8", "--save_best=accuracy", "--moving_average=0.98",
                               "--early_stopping=accuracy,patience=40"});
    if (p.asynchronous)
      more.push_back("--use_async");
    else if (!p.allreduce)
      more.push_back("--grads_to_wait=" + std::to_string(p.workers));
    return job::train(more);
  }

  static double last_accuracy(std::string const& log) {
    auto const at = log.rfind("{'accuracy': ");
    return at == std::string::npos ? 0 : std::stod(log.substr(at + 13));
  }

 private:
  void fail(std::string why) { out_.failures.push_back(std::move(why)); }

  // ---- What happens ----

  void disturb() {
    bool const begun = until([&] { return steps_since(began_) > 3; }, 60s);
    if (!begun) {
      if (!job_->ended()) fail("no step in 60 s");
      return;
    }
    for (intent const& next : plan_.faults) {
      if (next.in_recovery) {
        std::this_thread::sleep_for(next.before);
      } else {
        if (!recover()) return;
        std::this_thread::sleep_for(next.before);
      }
      seen_->read();
      if (job_->ended() || (!plan_.to_the_end && near_the_end())) return;
      strike(next);
    }
    recover();
  }

  bool near_the_end() const { return seen_->has("Starting epoch " + std::to_string(plan_.epochs - 1)); }

  template <class Condition>
  bool until(Condition condition, std::chrono::milliseconds most) {
    auto const end = std::chrono::steady_clock::now() + most;
    for (;;) {
      job_->tend();
      seen_->read();
      if (condition()) return true;
      if (job_->ended() || std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(10ms);
    }
  }

  std::size_t steps_since(wall_clock::time_point when) const {
    std::size_t n = 0;
    auto const& all = seen_->lines();
    for (std::size_t i = all.size(); i > 0 && (all[i - 1].process.empty() || all[i - 1].at >= when - 1s); --i)
      n += watcher::is_step(all[i - 1]) && all[i - 1].at > when;
    return n;
  }

  // Waits until the job trains again, with as many workers as it should have. False: it has ended, or hangs.
  bool recover() {
    if (out_.faults.empty()) return true;
    fault const& last = out_.faults.back();
    auto const dealt_with = [&] {
      for (auto it = seen_->lines().rbegin(); it != seen_->lines().rend(); ++it) {
        if (!it->process.empty() && it->at < last.at) return false;
        if (deals_with(*it, last, plan_.allreduce)) return true;
      }
      return false;
    };
    // Not every fault leaves a trace in the log, and not every worker is back at once.
    until(dealt_with, unnoticed(last.what) ? 0ms : 6s);
    auto const now = wall_clock::now();
    bool const goes_on = until([&] { return steps_since(now) > 0; }, 60s);
    if (!goes_on) {
      if (!job_->ended()) fail("no step in 60 s after '" + std::string(name(last.what)) + "'");
      return false;
    }
    until([&] { return workers().size() >= std::size_t(plan_.workers); }, 5s);
    return !job_->ended();
  }

  struct target {
    std::string name;
    pid_t pid;
  };

  std::vector<target> of_role(std::string const& role) const {
    std::vector<target> found;
    for (job::process const& p : job_->processes())
      if (p.role == role)
        found.push_back({role == "master" ? role : role + "-" + std::to_string(p.id), p.pid});
    std::ranges::sort(found, {}, &target::name);
    return found;
  }

  // Those that have joined; who is on the way may be hit as well, but is nobody's bystander.
  std::vector<target> workers() const {
    auto all = of_role("worker");
    std::erase_if(all, [&](target const& t) { return !seen_->joined().contains(t.name); });
    return all;
  }

  void strike(intent const& next) {
    auto const pick = [&](std::vector<target> const& from) {
      return from.empty() ? std::vector<target>{} : std::vector{from[next.choice % from.size()]};
    };
    std::vector<target> const joined = workers();
    std::vector<target> victims;
    switch (next.what) {
      case kind::server:
        victims = pick(of_role("ps"));
        break;
      case kind::squatted:
      case kind::newcomer_silent:
        victims = pick(plan_.by_hand || next.choice % 2 == 0 ? joined : of_role("ps"));
        if (victims.empty()) victims = pick(joined);
        break;
      case kind::storage_and_server:
        victims = pick(of_role("ps"));
        if (victims.empty()) victims = pick(joined);
        break;
      case kind::storage:
      case kind::master_cut:
        return strike_all(next, joined);
      case kind::group_signal:
      case kind::early_signal:
        return stop_all(next);
      case kind::journal:
      case kind::master_silent:
      case kind::master:
        victims = of_role("master");
        break;
      case kind::master_and_worker:
        victims = of_role("master");
        for (target const& t : pick(joined)) victims.push_back(t);
        break;
      case kind::all_workers:
        victims = of_role("worker");
        break;
      case kind::workers:
        victims = joined;
        if (victims.size() > 1) victims.erase(victims.begin() + long(next.choice % victims.size()));
        break;
      default:
        victims = pick(joined);
    }
    if (victims.empty()) return;
    std::vector<handle> handles;
    for (target const& v : victims) handles.emplace_back(v.pid);
    fault f{.what = next.what, .in_recovery = next.in_recovery, .at = {}, .victims = {}, .bystanders = {}};
    for (target const& v : victims) f.victims.push_back(v.name), hit_.insert(v.name);
    for (target const& w : joined)
      if (std::ranges::find(f.victims, w.name) == f.victims.end()) f.bystanders.push_back(w.name);
    for (target const& w : joined) pids_[w.name].insert(w.pid);
    auto const all = [&](int signal) {
      bool sent = false;
      for (handle const& h : handles) sent |= h.send(signal);
      return sent;
    };
    f.at = wall_clock::now();
    bool sent = false;
    switch (next.what) {
      case kind::short_silence:
      case kind::long_silence:
      case kind::master_silent:
        sent = all(SIGSTOP);
        std::this_thread::sleep_for(next.length);
        all(SIGCONT);
        break;
      case kind::slow: {
        auto const end = std::chrono::steady_clock::now() + next.length;
        while (std::chrono::steady_clock::now() < end) {
          sent |= all(SIGSTOP);
          std::this_thread::sleep_for(40ms);
          all(SIGCONT);
          std::this_thread::sleep_for(10ms);
        }
        break;
      }
      case kind::short_cut:
      case kind::long_cut:
        sent = true;
        job_->cut(victims.front().name, next.choice / 7 % 2 == 0);
        std::this_thread::sleep_for(next.length);
        job_->mend(victims.front().name);
        break;
      case kind::lost_reply:
      case kind::altered_record:
        try {
          sent = job_->harm(victims.front().name, next.choice / 7);
        } catch (std::runtime_error const& e) {
          fail(e.what()), sent = true;
        }
        break;
      case kind::squatted: {
        squatter neighbour(victims.front().pid, next.choice);
        sent = all(SIGKILL);
        neighbour.begin();
        std::this_thread::sleep_for(next.length);
        break;
      }
      case kind::newcomer_silent: {
        sent = all(SIGKILL);
        bool const server = victims.front().name.starts_with("ps-");
        auto const others = of_role(server ? "ps" : "worker");
        until([&] { return stop_newcomer(server ? "ps" : "worker", others, next.length); }, 5s);
        break;
      }
      case kind::storage_and_server: {
        failing_storage const disk(dir_ / "checkpoints");
        sent = all(SIGKILL);
        std::this_thread::sleep_for(next.length);
        break;
      }
      case kind::journal: {
        all(SIGSTOP);  // it must not write its journal anew
        damage(variable_of(victims.front().pid, "EDL_JOURNAL"), next.choice);
        sent = all(SIGKILL);
        break;
      }
      case kind::goodbye:
        sent = all(SIGTERM);
        break;
      default:
        sent = all(SIGKILL);
    }
    if (sent) out_.faults.push_back(std::move(f));
  }

  // What hits no process in particular.
  void strike_all(intent const& next, std::vector<target> const& joined) {
    fault f{.what = next.what, .at = wall_clock::now()};
    for (target const& w : joined) f.bystanders.push_back(w.name), pids_[w.name].insert(w.pid);
    if (next.what == kind::storage) {
      failing_storage const disk(dir_ / "checkpoints");
      if (!disk.broken()) return;
      std::this_thread::sleep_for(next.length);
    } else {
      job_->cut("master", next.choice / 7 % 2 == 0);
      std::this_thread::sleep_for(next.length);
      job_->mend("master");
    }
    out_.faults.push_back(std::move(f));
  }

  // Whatever comes of it, the same command goes on with the job.
  void stop_all(intent const& next) {
    fault f{.what = next.what, .at = wall_clock::now()};
    for (target const& w : of_role("worker")) f.victims.push_back(w.name), hit_.insert(w.name);
    auto const stop = [&](int signal, bool group) {
      int const code = job_->stop(signal, group);
      if (code == 0) return false;  // it was done
      if (code != 128 + signal) fail("told to stop, the job ended with " + std::to_string(code));
      if (!job_->nothing_left(5s)) fail("processes of a stopped job still run");
      return true;
    };
    auto const kept = [&] { return job::count(job_->log(), "the same command goes on from "); };
    auto const before = kept();
    static constexpr std::array signals{SIGTERM, SIGINT, SIGHUP};
    if (!stop(signals[next.choice % 3], true)) return;
    if (kept() == before) fail("no checkpoint is kept of a job that was told to stop");
    if (next.what == kind::early_signal) {
      job_->again();
      std::this_thread::sleep_for(milliseconds(next.choice / 3 % 101));
      stop(signals[next.choice / 7 % 2], false);
    }
    job_->again();
    out_.faults.push_back(std::move(f));
  }

  // Stops the first process of a role that is not among the others, for a while. False: there is none yet.
  bool stop_newcomer(std::string const& role, std::vector<target> const& others, milliseconds length) {
    for (target const& t : of_role(role)) {
      if (std::ranges::any_of(others, [&](target const& o) { return o.pid == t.pid; })) continue;
      handle const it(t.pid);
      hit_.insert(t.name);
      it.send(SIGSTOP);
      std::this_thread::sleep_for(length);
      it.send(SIGCONT);
      return true;
    }
    return false;
  }

  // ---- What became of it ----

  void check() {
    auto const& lines = seen_->lines();
    for (int e = 0; e < plan_.epochs && !plan_.judged; ++e) {
      bool const exact = job::accounts(
          out_.log, e, "2048 records in the data set, 2048 counted once, 0 skipped as damaged, 0 left");
      if (!exact) fail("the log's account of epoch " + std::to_string(e) + " is not exact");
    }
    check_bystanders(lines);
    if (!plan_.allreduce) check_progress(lines);
    check_audit();
    out_.accuracy = last_accuracy(out_.log);
    judged_result judged;
    if (plan_.judged) {
      judged = judged_result::of(dir_ / "checkpoints", out_.log);
      out_.best = judged.best_version + ", ended at version " + std::to_string(judged.ended);
      if (!seen_->has("Early stopping: ")) fail("the job has not ended early");
    }
    if (!compare_) return;
    reference::result const& wanted = compare_->of(plan_, program_);
    out_.undisturbed = wanted.accuracy;
    if (plan_.deterministic()) {
      out_.same_bits = job::slurp(dir_ / "model/model.safetensors") == wanted.model;
      if (!*out_.same_bits) fail("the model is not the undisturbed run's, bit for bit");
    }
    if (plan_.judged)
      for (std::string const& why : judged.differences(wanted.judged)) fail(why);
    if (std::abs(out_.accuracy - wanted.accuracy) > 0.05)
      fail("accuracy " + std::to_string(out_.accuracy) + ", undisturbed " + std::to_string(wanted.accuracy));
  }

  // What servers have acknowledged stays, or the master says that it goes back. A push that some servers had
  // and others not may be undone, one for each worker.
  void check_progress(std::vector<line> const& lines) {
    std::uint64_t most = 0;
    auto const number = [](line const& l, std::string_view after) {
      auto const at = l.text.rfind(after);
      return at == std::string::npos ? 0 : std::stoull(l.text.substr(at + after.size()));
    };
    for (line const& l : lines) {
      if (watcher::is_step(l)) most = std::max<std::uint64_t>(most, number(l, "steps = "));
      if (l.process != "master") continue;
      if (l.text.starts_with("Going back to version ")) most = number(l, "Going back to version ");
      if (!l.text.starts_with("Going on at version ")) continue;
      auto const now = number(l, "Going on at version ");
      if (now + std::uint64_t(plan_.workers) < most)
        fail("acknowledged pushes were undone: from version " + std::to_string(most) + ", " + l.text);
      most = std::min<std::uint64_t>(most, now);
    }
  }

  void check_bystanders(std::vector<line> const& lines) {
    std::map<std::string, int> finished;
    std::size_t given_up = 0, loose = 0;
    for (line const& l : lines) {
      bool const worker = l.process.starts_with("worker-");
      if (worker && l.text == "the job is over") ++finished[l.process];
      if (worker && !hit_.contains(l.process) && (l.level == "ERROR" || l.level == "CRITICAL"))
        fail(l.process + " was not hit and printed: " + l.text);
      if (l.process.empty() && (l.text.starts_with("tiny: ") || l.level.empty())) {
        bool const told = l.text.find("has given this worker up") != std::string::npos;
        told ? ++given_up : ++loose;
        if (!told) fail("somebody printed: " + l.text);
      }
    }
    std::size_t silent = 0;
    for (fault const& f : out_.faults) silent += silences(f.what);
    if (given_up > silent) fail("workers that were never silent have been given up");
    for (auto const& [name, pids] : seen_->joined()) {
      std::set<long> all = pids;
      if (auto const it = pids_.find(name); it != pids_.end())
        all.insert(it->second.begin(), it->second.end());
      if (hit_.contains(name)) continue;
      if (all.size() == 1 && finished[name] == 1) continue;
      // Who joined a job that was over at once has nothing to say.
      ++out_.restarted;
      fail(name + " was not hit and has not stayed to the end");
    }
    for (fault const& f : out_.faults) {
      if (f.what != kind::short_silence && f.what != kind::slow && f.what != kind::short_cut &&
          f.what != kind::lost_reply)
        continue;
      std::string const lost = "worker " + f.victims.front().substr(7) + " is lost: it gave no sign of life";
      out_.paused_lost += seen_->has(lost);
    }
  }

  void check_audit() {
    job::run a({"audit", dir_ / "checkpoints"}, {.program = program_});
    int const code = a.wait();
    std::string const text = a.log();
    std::istringstream in(text);
    int epochs = 0;
    for (std::string one; std::getline(in, one);) {
      std::istringstream fields(one);
      int first;
      std::uint64_t records, applied, skipped, left, lost, repeated;
      if (!(fields >> first)) continue;
      int last = first;
      if (fields.peek() == '-') fields.ignore() >> last;  // epochs that are alike share a row
      if (!(fields >> records >> applied >> skipped >> left >> lost >> repeated)) continue;
      epochs += last - first + 1;
      out_.lost += lost, out_.repeated += repeated;
      if (!plan_.judged && (left || applied != records))
        fail("the last checkpoint's account is not complete: " + one);
    }
    bool const all = plan_.judged ? epochs > 0 : epochs == plan_.epochs;
    if (code != 0 || out_.lost || out_.repeated || !all) fail("audit: " + text);
  }

  plan plan_;
  reference* compare_;
  std::string program_;
  job::scratch dir_;
  subject* job_ = nullptr;
  watcher* seen_ = nullptr;
  outcome out_;
  wall_clock::time_point began_ = wall_clock::now();
  std::set<std::string> hit_;
  std::map<std::string, std::set<long>> pids_;
};

inline reference::result const& reference::of(plan const& p, std::string const& program) {
  auto const [it, fresh] = known_.try_emplace(p.configuration());
  if (!fresh) return it->second;
  job::scratch const dir;
  job::run j(trial::command(p, dir), {.program = program});
  if (j.wait(300s) == 0)
    it->second = {job::slurp(dir / "model/model.safetensors"), trial::last_accuracy(j.log()),
                  judged_result::of(dir / "checkpoints", j.log())};
  return it->second;
}

}  // namespace chaos
