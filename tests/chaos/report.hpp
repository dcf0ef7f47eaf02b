// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "chaos/fault.hpp"
#include "chaos/plan.hpp"
#include "chaos/trial.hpp"

namespace chaos {

/// What many jobs have shown together.
class report {
 public:
  void add(std::uint64_t number, plan const& p, outcome const& o) {
    ++jobs_[p.by_hand ? p.strategy() + ", networks" : p.strategy()];
    for (fault const& f : o.faults) ++faults_[std::string(name(f.what))], in_recovery_ += f.in_recovery;
    faults_in_all_ += o.faults.size();
    samples_.insert(samples_.end(), o.samples.begin(), o.samples.end());
    lost_ += o.lost, repeated_ += o.repeated;
    restarted_ += o.restarted, paused_lost_ += o.paused_lost;
    if (o.same_bits) ++(*o.same_bits ? same_ : different_);
    if (!p.deterministic() && o.undisturbed > 0)
      worst_accuracy_ = std::max(worst_accuracy_, o.undisturbed - o.accuracy);
    if (!o.failures.empty())
      failures_.push_back({{"job", number},
                           {"seed", p.seed},
                           {"configuration", p.configuration()},
                           {"faults", o.faults.size()},
                           {"reasons", o.failures}});
    seconds_ += o.seconds;
  }

  std::size_t faults() const { return faults_in_all_; }
  bool good() const { return failures_.empty(); }

  nlohmann::json json() const {
    nlohmann::json all = nlohmann::json::array();
    for (sample const& s : samples_)
      all.push_back({{"fault", name(s.what)},
                     {"strategy", s.strategy},
                     {"in_recovery", s.in_recovery},
                     {"nobody_left", s.alone},
                     {"next_step_s", s.next_step},
                     {"found_s", s.found},
                     {"recovered_s", s.recovered}});
    return {{"jobs", jobs_},
            {"faults", faults_in_all_},
            {"faults_by_kind", faults_},
            {"faults_in_recovery", in_recovery_},
            {"records_lost", lost_},
            {"records_repeated", repeated_},
            {"bystanders_restarted", restarted_},
            {"short_silences_that_cost_a_worker", paused_lost_},
            {"models_of_the_same_bits", same_},
            {"models_of_other_bits", different_},
            {"most_accuracy_lost", worst_accuracy_},
            {"job_seconds", seconds_},
            {"failures", failures_},
            {"samples", all}};
  }

  void print(std::FILE* to) const {
    std::size_t jobs = 0;
    for (auto const& [how, n] : jobs_) jobs += std::size_t(n);
    std::fprintf(to,
                 "\n%zu jobs, %zu faults (%d of them while the job recovered from the one before), %.0f s\n",
                 jobs, faults_in_all_, in_recovery_, seconds_);
    for (auto const& [how, n] : jobs_) std::fprintf(to, "  %4d jobs: %s\n", n, how.c_str());
    for (auto const& [what, n] : faults_) std::fprintf(to, "  %4d x %s\n", n, what.c_str());
    std::fprintf(
        to,
        "records lost %llu, repeated %llu; workers that were not hit and restarted: %d; short silences "
        "that cost a worker its place: %d\nmodels equal to the undisturbed ones, bit for bit: %d of %d; "
        "most accuracy lost by the others: %.4f\njobs that failed: %zu\n\n",
        static_cast<unsigned long long>(lost_), static_cast<unsigned long long>(repeated_), restarted_,
        paused_lost_, same_, same_ + different_, worst_accuracy_, failures_.size());
    std::fprintf(to, "%-31s %-27s %21s %30s %30s\n", "", "", "next step, s", "master has dealt with it, s",
                 "first step after that, s");
    std::fprintf(to, "%-31s %-27s %5s", "strategy", "fault", "count");
    for (int i = 0; i < 3; ++i) std::fprintf(to, " %9s %9s %9s", "median", "95 %", "worst");
    std::fprintf(to, "\n");
    std::map<std::tuple<std::string, bool, bool, kind>, std::vector<sample>> groups;
    for (sample const& s : samples_) groups[{s.strategy, s.in_recovery, s.alone, s.what}].push_back(s);
    for (auto const& [key, group] : groups) {
      auto const& [strategy, in_recovery, alone, what] = key;
      std::fprintf(to, "%-31s %-27s %5zu", strategy.c_str(),
                   (std::string(name(what)) + (alone ? " (1)" : "") + (in_recovery ? " *" : "")).c_str(),
                   group.size());
      for (double sample::* part : {&sample::next_step, &sample::found, &sample::recovered}) {
        std::vector<double> values;
        for (sample const& s : group)
          if (s.*part >= 0) values.push_back(s.*part);
        std::ranges::sort(values);
        if (values.empty()) {
          std::fprintf(to, " %9s %9s %9s", "-", "-", "-");
          continue;
        }
        auto const at = [&](double q) { return values[std::size_t(q * double(values.size() - 1) + 0.5)]; };
        std::fprintf(to, " %9.3f %9.3f %9.3f", at(0.5), at(0.95), values.back());
      }
      std::fprintf(to, "\n");
    }
    std::fprintf(to,
                 "(1) no other worker was left: the next step is a newcomer's; * while the job recovered "
                 "from the fault "
                 "before\n");
    for (auto const& f : failures_) std::fprintf(to, "FAILED %s\n", f.dump().c_str());
  }

 private:
  std::map<std::string, int> jobs_, faults_;
  std::size_t faults_in_all_ = 0;
  int in_recovery_ = 0, restarted_ = 0, paused_lost_ = 0, same_ = 0, different_ = 0;
  std::uint64_t lost_ = 0, repeated_ = 0;
  double worst_accuracy_ = 0, seconds_ = 0;
  nlohmann::json failures_ = nlohmann::json::array();
  std::vector<sample> samples_;
};

}  // namespace chaos
