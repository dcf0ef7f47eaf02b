// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/job.hpp"
#include "chaos/network.hpp"

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

  /// Workers that ended with an error, besides those that were hit.
  virtual std::vector<std::string> failed(std::set<std::string> const&) { return {}; }
};

/// One command, which starts all others.
class launched_job final : public subject {
 public:
  launched_job(std::vector<std::string> command, job::options o) : run_(std::move(command), std::move(o)) {}
  bool ended() override { return run_.ended(); }
  int wait(std::chrono::milliseconds deadline) override { return run_.wait(deadline); }
  std::vector<job::process> processes() override { return run_.processes(); }
  bool nothing_left(std::chrono::milliseconds within) override { return run_.nothing_left(within); }
  std::string log_path() const override { return run_.log_path(); }
  std::string log() const override { return run_.log(); }

 private:
  job::run run_;
};

/// Roles that are started by hand, the workers each behind a wire that can be cut. Workers that end are
/// followed by others.
class crew final : public subject {
 public:
  crew(std::vector<std::string> command, job::options o, int workers, int servers)
      : command_(std::move(command)),
        options_(std::move(o)),
        network_(workers + 1),
        at_(std::size_t(workers)) {
    command_.push_back("--log_file_path=" + log_path());
    int const last = int(at_.size());  // the master's own place
    master_ = start({{"EDL_ROLE", "master"}, {"MY_POD_IP", network_.address(last)}}, network_.inside(last));
    if (!master_->says("listens at "))
      throw std::runtime_error("the master does not start: " + master_->log());
    std::string const log = master_->log();
    auto const at = log.find("tcp:", log.find("listens at ")) + 4;
    where_ = log.substr(at, log.find('\n', at) - at);
    for (int i = 0; i < servers; ++i)
      servers_.push_back(start({{"EDL_ROLE", "ps"},
                                {"PS_ID", std::to_string(i)},
                                {"MASTER_ADDR", where_},
                                {"MY_POD_IP", network_.outside()}},
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
                     {"MASTER_ADDR", where_},
                     {"MY_POD_IP", network_.address(int(i))}},
                    network_.inside(int(i)));
    }
  }

  void cut(std::string const& name, bool dark) override {
    each(name, [&](int i) { network_.cut(i, dark); });
  }
  void mend(std::string const& name) override {
    each(name, [&](int i) { network_.mend(i); });
  }

  std::vector<std::string> failed(std::set<std::string> const& hit) override {
    for (worker& w : at_) bury(w);
    std::vector<std::string> out;
    for (auto const& [name, what] : failed_)
      if (!hit.contains(name)) out.push_back(name + " was not hit and " + what);
    return out;
  }

 private:
  struct worker {
    int id = 0;
    std::unique_ptr<job::run> run;
  };

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
    bool const late = job::has(log, "the job is over: it takes nobody any more");
    over_ = over_ || late || job::has(log, "the job is over");
    if (code != 0 && !late)
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
  network network_;
  std::string where_;
  std::vector<worker> at_;  // by place
  std::vector<std::unique_ptr<job::run>> servers_;
  std::unique_ptr<job::run> master_;
  int next_ = 0;
  bool over_ = false;  // who leaves now has nobody to follow it
  std::map<std::string, std::string> failed_;
};

}  // namespace chaos
