// SPDX-License-Identifier: Apache-2.0
#include "simulate/pollux.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <set>

#include "edl/core/error.hpp"
#include "simulate/csv.hpp"

namespace edl::simulate {
namespace {

/// Epochs after which the published simulation ends a job, where its log is longer.
std::size_t epochs_of(std::string const& application) {
  static std::map<std::string, std::size_t> const all{{"bert", 2},      {"cifar10", 100},    {"ncf", 10},
                                                      {"imagenet", 90}, {"deepspeech2", 80}, {"yolov3", 50}};
  auto const at = all.find(application);
  return at == all.end() ? 0 : at->second;
}

std::string spelled(placement on) {
  placement best = on;
  for (std::size_t i = 0; i < on.size(); ++i) {
    std::rotate(on.begin(), on.begin() + 1, on.end());
    best = std::min(best, on);
  }
  std::string text;
  for (int n : best) text += std::to_string(n);
  return text;
}

}  // namespace

pollux_application::pollux_application(std::string const& directory) {
  namespace fs = std::filesystem;
  name_ = fs::path(directory).filename().string();
  std::set<int> locals;
  csv const placed(directory + "/placements.csv", {"placement", "local_bsz", "step_time", "sync_time"});
  std::map<std::size_t, std::map<int, std::map<int, std::vector<times>>>> same;
  for (std::size_t r = 0; r < placed.rows(); ++r) {
    std::string const& p = placed.text(r, 0);
    int workers = 0;
    for (char c : p) workers += c - '0';
    int const local = int(placed.number(r, 1, 1, 1e9));
    times const t{placed.number(r, 2, 0, 1e9), placed.number(r, 3, 0, 1e9)};
    placements_[p][local] = t;
    same[p.size()][workers][local].push_back(t);
    locals.insert(local);
  }
  for (auto const& [nodes, sizes] : same)
    for (auto const& [workers, by] : sizes)
      for (auto const& [local, all] : by) {
        times mean;
        for (times const& t : all)
          mean.step += t.step / double(all.size()), mean.sync += t.sync / double(all.size());
        sizes_[nodes][workers][local] = mean;
      }
  csv const scaled(directory + "/scalability.csv",
                   {"num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"});
  for (std::size_t r = 0; r < scaled.rows(); ++r)
    sizes_[std::size_t(scaled.number(r, 0, 1, 1e6))][int(scaled.number(r, 1, 1, 1e6))]
          [int(scaled.number(r, 2, 1, 1e9))] = {scaled.number(r, 3, 0, 1e9), scaled.number(r, 4, 0, 1e9)};
  epochs_ = epochs_of(name_);
  for (fs::directory_entry const& file : fs::directory_iterator(directory)) {
    std::string const f = file.path().filename().string();
    if (f.rfind("validation-", 0) != 0) continue;
    int const batch = std::atoi(f.c_str() + 11);
    csv const v(file.path().string(), {"progress", "grad_sqr", "grad_var"});
    if (batch < 1 || v.rows() < 1)
      throw usage_error(fmt::format("{}: needs a batch in its name and a row", file.path().string()));
    for (std::size_t r = 0; r < v.rows(); ++r)
      validated_[batch].push_back(
          {v.number(r, 0, 0, 1e300), v.number(r, 1, 0, 1e300), v.number(r, 2, 0, 1e300)});
    epochs_ = epochs_ == 0 ? v.rows() : std::min(epochs_, v.rows());
  }
  if (validated_.empty() || locals.empty())
    throw usage_error(fmt::format("{}: has no validation-BATCH.csv, or no placements", directory));
  if (name_ == "yolov3")
    locals.erase(locals.upper_bound(8), locals.end());  // as the published simulation has it
  local_sizes_.assign(locals.begin(), locals.end());
  least_local_ = local_sizes_.front();
  most_local_ = local_sizes_.back();
  // What any batch size gets done by then: the slowest tells.
  double before = 0;
  for (std::size_t e = 0; e < epochs_; ++e) {
    double least = std::numeric_limits<double>::infinity();
    for (auto const& [batch, all] : validated_) least = std::min(least, all[e].progress);
    progress_.push_back(std::max(0.0, least - before));
    before = least;
  }
}

double pollux_application::gain(double batch, std::size_t e) const {
  batch = std::clamp(batch, double(first_batch()), double(largest_batch()));
  auto above = validated_.lower_bound(int(std::ceil(batch)));
  auto below = above;
  if (above->first > batch) --below;
  double const part = above == below ? 0 : (batch - below->first) / (above->first - below->first);
  auto const mix = [&](double a, double b) { return a + (b - a) * part; };
  double const sqr = mix(below->second[e].sqr, above->second[e].sqr),
               var = mix(below->second[e].var, above->second[e].var);
  return (var + sqr) / (var / (batch / first_batch()) + sqr);
}

pollux_application::times pollux_application::at(by_local const& of, double local) {
  auto const above = of.lower_bound(int(std::ceil(local)));
  if (above == of.end()) return of.rbegin()->second;
  if (above == of.begin() || above->first == local) return above->second;
  auto const below = std::prev(above);
  double const part = (local - below->first) / (above->first - below->first);
  return {below->second.step + (above->second.step - below->second.step) * part,
          below->second.sync + (above->second.sync - below->second.sync) * part};
}

pollux_application::times pollux_application::between(std::size_t nodes, int workers, double local) const {
  auto const row = [&](std::map<int, by_local> const& of) {
    auto const above = of.lower_bound(workers);
    if (above == of.end()) return at(of.rbegin()->second, local);
    if (above == of.begin() || above->first == workers) return at(above->second, local);
    auto const below = std::prev(above);
    times const a = at(below->second, local), b = at(above->second, local);
    double const part = double(workers - below->first) / (above->first - below->first);
    return times{a.step + (b.step - a.step) * part, a.sync + (b.sync - a.sync) * part};
  };
  auto const above = sizes_.lower_bound(nodes);
  if (above == sizes_.end()) return row(sizes_.rbegin()->second);
  if (above == sizes_.begin() || above->first == nodes) return row(above->second);
  auto const below = std::prev(above);
  times const a = row(below->second), b = row(above->second);
  double const part = double(nodes - below->first) / double(above->first - below->first);
  return {a.step + (b.step - a.step) * part, a.sync + (b.sync - a.sync) * part};
}

pollux_application::times pollux_application::time_of(placement const& on, double local) const {
  auto const measured = placements_.find(spelled(on));
  if (measured != placements_.end()) return at(measured->second, local);
  return between(on.size(), std::accumulate(on.begin(), on.end(), 0), local);
}

double pollux_work::records(std::size_t part) const {
  return application_->progress_of(part) * application_->first_batch();
}

int pollux_work::most_workers() const {
  return std::max(1, (may_change_ ? application_->largest_batch() : batch_) / application_->least_local());
}

std::vector<double> pollux_work::compute(placement const& on) const {
  pollux_application const& app = *application_;
  int const n = std::accumulate(on.begin(), on.end(), 0);
  struct way {
    double batch, seconds;
  };
  std::vector<way> ways;
  auto const add = [&](int local, int passes) {
    auto const t = app.time_of(on, local);
    ways.push_back({double(n) * local * passes, t.step + (passes - 1) * (t.step - t.sync)});
  };
  auto const up = [](int a, int b) { return (a + b - 1) / b; };
  if (!may_change_) {
    int const share = up(batch_, n);
    int passes = up(share, app.most_local());
    if (n == 1 && batch_ > app.first_batch()) passes = std::max(2, passes);
    add(std::max(1, std::min(up(share, passes), app.largest_batch() / (n * passes))), passes);
  } else {
    std::vector<int> locals = app.local_sizes();
    locals.push_back(std::clamp(up(app.first_batch(), n), app.least_local(), app.most_local()));
    for (int local : locals)
      for (int passes : {1, 2, 3, 4, 6, 8, 12, 16}) {
        double const batch = double(n) * local * passes;
        if (batch > app.largest_batch() || batch < app.first_batch()) continue;
        if (n == 1 && batch > app.first_batch() && passes < 2) continue;  // its noise could not be measured
        add(local, passes);
      }
    if (ways.empty()) add(app.least_local(), 1);
  }
  std::vector<double> all;
  for (std::size_t e = 0; e < app.epochs(); ++e) {
    double best = 0;
    for (way const& w : ways) best = std::max(best, app.gain(w.batch, e) / w.seconds);
    all.push_back(app.progress_of(e) / best);
  }
  return all;
}

}  // namespace edl::simulate
