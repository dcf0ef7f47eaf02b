// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/job.hpp"
#include "chaos/mischief.hpp"
#include "chaos/network.hpp"
#include "chaos/plan.hpp"

namespace chaos {

using namespace std::chrono_literals;

/// A job to which things happen, however its processes are started.
class subject {
 public:
  virtual ~subject() = default;
  virtual bool ended() = 0;
  /// The exit code; -1: it does not end in time.
  virtual int wait(std::chrono::milliseconds deadline) = 0;
  virtual std::vector<job::process> processes() = 0;
  virtual bool nothing_left(std::chrono::milliseconds within) = 0;
  virtual std::string log_path() const = 0;
  virtual std::string log() const = 0;

  /// Does what nobody else does in such a job; called every few milliseconds.
  virtual void tend() {}
  virtual void cut(std::string const&, bool) {}
  virtual void mend(std::string const&) {}
  /// Harms what passes between a worker and the master. False: nothing has passed.
  virtual bool harm(std::string const&, std::uint64_t) { return false; }
  /// Tells the command, or all of its group, to stop. Its exit code; -1: it does not end.
  virtual int stop(int, bool) { return -1; }
  /// Gives the same command again, once it has ended.
  virtual void again() {}

  /// Workers that ended with an error, besides those that were hit.
  virtual std::vector<std::string> failed(std::set<std::string> const&) { return {}; }
};

/// One command, which starts all others.
class launched_job final : public subject {
 public:
  launched_job(std::vector<std::string> command, job::options o)
      : command_(std::move(command)), options_(std::move(o)) {
    options_.log = dir_ / "log", options_.own_group = true;
    again();
  }
  bool ended() override { return run_->ended(); }
  int wait(std::chrono::milliseconds deadline) override { return run_->wait(deadline); }
  std::vector<job::process> processes() override { return run_->processes(); }
  bool nothing_left(std::chrono::milliseconds within) override { return run_->nothing_left(within); }
  std::string log_path() const override { return options_.log; }
  std::string log() const override { return run_->log(); }
  int stop(int signal, bool group) override {
    if (!ended()) ::kill(group ? -run_->pid() : run_->pid(), signal);
    return wait(60s);
  }
  void again() override { run_ = std::make_unique<job::run>(command_, options_); }

 private:
  std::vector<std::string> command_;
  job::options options_;
  job::scratch dir_;
  std::unique_ptr<job::run> run_;
};

/// Roles that are started by hand, the workers each behind a wire that can be cut, or a relay that can harm
/// what passes. Workers that end are followed by others.
class crew final : public subject {
 public:
  crew(std::vector<std::string> command, job::options o, plan const& p)
      : command_(std::move(command)), options_(std::move(o)), at_(std::size_t(p.workers)) {
    if (!p.proxied) network_.emplace(p.workers + 1);
    command_.push_back("--log_file_path=" + log_path());
    int const last = int(at_.size());  // the master's own place
    master_ = start({{"EDL_ROLE", "master"}, {"MY_POD_IP", address(last)}}, inside(last));
    if (!master_->says("listens at "))
      throw std::runtime_error("the master does not start: " + master_->log());
    std::string const log = master_->log();
    auto const at = log.find("tcp:", log.find("listens at ")) + 4;
    where_ = log.substr(at, log.find('\n', at) - at);
    for (std::size_t i = 0; p.proxied && i < at_.size(); ++i)
      at_[i].way = std::make_unique<saboteur>(job::relay::place_of(log), p.plain);
    for (int i = 0; i < p.servers; ++i)
      servers_.push_back(start({{"EDL_ROLE", "ps"},
                                {"PS_ID", std::to_string(i)},
                                {"MASTER_ADDR", where_},
                                {"MY_POD_IP", network_ ? network_->outside() : address(0)}},
                               {}));
    tend();
  }

  bool ended() override { return master_->ended(); }
  int wait(std::chrono::milliseconds deadline) override {
    bool const over = job::eventually([&] { return tend(), master_->ended(); }, deadline);
    return over ? master_->wait(0ms) : -1;
  }
  std::vector<job::process> processes() override {
    std::vector<job::process> all;
    if (!master_->ended()) all.push_back({master_->pid(), "master", 0});
    for (std::size_t i = 0; i < servers_.size(); ++i)
      if (!servers_[i]->ended()) all.push_back({servers_[i]->pid(), "ps", int(i)});
    for (worker const& w : at_)
      if (w.run && !w.run->ended()) all.push_back({w.run->pid(), "worker", w.id});
    return all;
  }
  bool nothing_left(std::chrono::milliseconds within) override {
    // Who was started when the job was about to end waits for another master, until its starter stops it.
    std::string const said = log();
    for (worker& w : at_)
      if (w.run && !job::has(said, "worker " + std::to_string(w.id) + " joined")) w.run.reset();
    return job::eventually([&] { return processes().empty(); }, within);
  }
  std::string log_path() const override { return dir_ / "log"; }
  std::string log() const override { return job::slurp(log_path()); }

  void tend() override {
    if (master_->ended()) return;
    for (std::size_t i = 0; i < at_.size(); ++i) {
      worker& w = at_[i];
      if (w.run && !w.run->ended()) continue;
      bury(w);
      if (over_) continue;
      w.id = next_++;
      w.run = start({{"EDL_ROLE", "worker"},
                     {"WORKER_ID", std::to_string(w.id)},
                     {"MASTER_ADDR", w.way ? w.way->address() : where_},
                     {"MY_POD_IP", address(int(i))}},
                    inside(int(i)));
    }
  }

  void cut(std::string const& name, bool dark) override {
    each(name, [&](int i) { network_->cut(i, dark); });
  }
  void mend(std::string const& name) override {
    each(name, [&](int i) { network_->mend(i); });
  }

  bool harm(std::string const& name, std::uint64_t choice) override {
    bool harmed = false;
    each(name, [&](int i) { harmed = i < int(at_.size()) && at_[std::size_t(i)].way->harm(choice); });
    return harmed;
  }

  std::vector<std::string> failed(std::set<std::string> const& hit) override {
    for (worker& w : at_) bury(w);
    std::vector<std::string> out;
    for (std::size_t i = 0; i < servers_.size(); ++i)
      if (servers_[i]->ended() && servers_[i]->wait(0ms) != 0)
        out.push_back(
            fmt::format("ps-{} ended with {}: {}", i, servers_[i]->wait(0ms), last_line(servers_[i]->log())));
    for (auto const& [name, what] : failed_)
      if (!hit.contains(name)) out.push_back(name + " was not hit and " + what);
    return out;
  }

 private:
  struct worker {
    int id = 0;
    std::unique_ptr<job::run> run;
    std::unique_ptr<saboteur> way;  // to the master
  };

  std::string address(int place) const { return network_ ? network_->address(place) : "127.0.0.1"; }
  std::vector<std::string> inside(int place) const {
    return network_ ? network_->inside(place) : std::vector<std::string>{};
  }

  std::unique_ptr<job::run> start(job::environment more, std::vector<std::string> before) {
    more.insert(more.end(),
                {{"EDL_JOB_NAME", "chaos"}, {"EDL_JOB_TOKEN", "0123456789abcdef0123456789abcdef"}});
    job::options o = options_;
    o.env.insert(o.env.end(), more.begin(), more.end());
    std::vector<std::string> line = command_;
    if (!before.empty()) {
      line.insert(line.begin(), o.program);
      o.program = before.front();
      line.insert(line.begin(), before.begin() + 1, before.end());
    }
    return std::make_unique<job::run>(line, o);
  }

  void bury(worker& w) {
    if (!w.run || !w.run->ended()) return;
    int const code = w.run->wait(0ms);
    std::string const log = w.run->log();
    bool const late = job::has(log, "the job is over: it accepts no more members");
    over_ = over_ || late || job::has(log, "the job is over");
    // Who had no time to join before the master was gone waits for another.
    bool const never_in = code == 75 && !job::has(log, "joined the job");
    if (code != 0 && !late && !never_in)
      failed_["worker-" + std::to_string(w.id)] =
          "ended with " + std::to_string(code) + ": " + last_line(log);
  }

  static std::string last_line(std::string const& text) {
    auto const end = text.find_last_not_of('\n');
    auto const begin = text.rfind('\n', end);
    return text.substr(begin + 1, end - begin);
  }

  template <class F>
  void each(std::string const& name, F what) {
    if (name == "master") what(int(at_.size()));
    for (std::size_t i = 0; i < at_.size(); ++i)
      if ("worker-" + std::to_string(at_[i].id) == name) what(int(i));
  }

  std::vector<std::string> command_;
  job::options options_;
  job::scratch dir_;
  std::optional<network> network_;
  std::string where_;
  std::vector<worker> at_;  // by place
  std::vector<std::unique_ptr<job::run>> servers_;
  std::unique_ptr<job::run> master_;
  int next_ = 0;
  bool over_ = false;  // who leaves now has nobody to follow it
  std::map<std::string, std::string> failed_;
};

}  // namespace chaos
