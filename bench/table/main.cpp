// SPDX-License-Identifier: Apache-2.0
// A table of rows beside libcuckoo and std::unordered_map, in one process and one thread: lookups and steps
// of Adagrad per second, and bytes a row. Contestants take turns, 64 batches at a time, on the same ids.
#include <fmt/format.h>
#include <malloc.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/compute/sparse/table.hpp"
#include "edl/core/random.hpp"
#ifdef BENCH_LIBCUCKOO
#include <libcuckoo/cuckoohash_map.hh>
#endif

namespace {

constexpr int width = 16;
constexpr std::size_t per_batch = 26 * 512;

struct stored {
  std::array<float, width> weights, accumulator;
};

/// Ids whose ranks have Zipf's law with exponent 1.05, by rejection (Hörmann and Derflinger, 1996).
class zipf {
 public:
  zipf(double n, double s) : n_(n), s_(s), first_(h(1.5) - 1), last_(h(n + 0.5)) {}
  std::uint64_t operator()(std::mt19937_64& random) const {
    for (;;) {
      double const u = last_ + double(random() >> 11) * 0x1p-53 * (first_ - last_), x = inverse(u),
                   k = std::floor(std::clamp(x + 0.5, 1.0, n_));
      if (u >= h(k + 0.5) - std::exp(-s_ * std::log(k))) return edl::mix(1, std::uint64_t(k));
    }
  }

 private:
  double h(double x) const { return (std::pow(x, 1 - s_) - 1) / (1 - s_); }
  double inverse(double x) const { return std::pow(1 + x * (1 - s_), 1 / (1 - s_)); }
  double n_, s_, first_, last_;
};

void step(stored& r, float const* g) {
  for (int k = 0; k < width; ++k) {
    r.accumulator[k] += g[k] * g[k];
    r.weights[k] -= 0.01f * g[k] / (std::sqrt(r.accumulator[k]) + 1e-7f);
  }
}

struct contestant {
  std::string name;
  std::function<void(std::vector<std::uint64_t> const&)> create;
  std::function<void(std::vector<std::uint64_t> const&, float*)> pull;
  std::function<void(std::vector<std::uint64_t> const&, float const*)> push;
  double pulling = 0, pushing = 0, pulled = 0, pushed = 0, bytes = 0;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double resident() {
  long pages = 0, ignored = 0;
  if (auto* f = std::fopen("/proc/self/statm", "r")) {
    (void)!std::fscanf(f, "%ld %ld", &ignored, &pages);
    std::fclose(f);
  }
  return double(pages) * 4096;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t const rows = argc > 1 ? std::stoul(argv[1]) : 10'000'000;
  double const seconds = argc > 2 ? std::stod(argv[2]) : 10;
  edl::rule<edl::adagrad> const rule{edl::adagrad{.learning_rate = 0.01f}};
  edl::sparse::table table({.width = width}, rule);
  std::unordered_map<std::uint64_t, stored> plain;
#ifdef BENCH_LIBCUCKOO
  libcuckoo::cuckoohash_map<std::uint64_t, stored> cuckoo;
#endif
  std::uint32_t clock = 0;
  std::vector<contestant> all;
  all.push_back({.name = "edl",
                 .create =
                     [&](auto const& ids) {
                       std::vector<float> const none(ids.size() * width);
                       table.push(ids, none, 0.01f, clock, clock);
                     },
                 .pull = [&](auto const& ids, float* to) { table.pull(ids, {to, ids.size() * width}); },
                 .push =
                     [&](auto const& ids, float const* g) {
                       ++clock;
                       table.push(ids, {g, ids.size() * width}, 0.01f, clock, clock);
                     }});
#ifdef BENCH_LIBCUCKOO
  all.push_back({.name = "libcuckoo",
                 .create =
                     [&](auto const& ids) {
                       for (std::uint64_t id : ids) cuckoo.insert(id, stored{});
                     },
                 .pull =
                     [&](auto const& ids, float* to) {
                       for (std::size_t i = 0; i < ids.size(); ++i)
                         cuckoo.find_fn(ids[i], [&](stored const& r) {
                           std::memcpy(to + i * width, r.weights.data(), 64);
                         });
                     },
                 .push =
                     [&](auto const& ids, float const* g) {
                       for (std::size_t i = 0; i < ids.size(); ++i)
                         cuckoo.update_fn(ids[i], [&](stored& r) { step(r, g + i * width); });
                     }});
#endif
  all.push_back({.name = "std::unordered_map",
                 .create =
                     [&](auto const& ids) {
                       for (std::uint64_t id : ids) plain[id];
                     },
                 .pull =
                     [&](auto const& ids, float* to) {
                       for (std::size_t i = 0; i < ids.size(); ++i)
                         std::memcpy(to + i * width, plain.find(ids[i])->second.weights.data(), 64);
                     },
                 .push =
                     [&](auto const& ids, float const* g) {
                       for (std::size_t i = 0; i < ids.size(); ++i)
                         step(plain.find(ids[i])->second, g + i * width);
                     }});

  std::vector<float> values(per_batch * width), gradients(per_batch * width, 0.01f);
  for (contestant& c : all) {
    ::malloc_trim(0);
    double const before = resident();
    std::vector<std::uint64_t> ids;
    for (std::uint64_t k = 1; k <= rows; ++k) {
      ids.push_back(edl::mix(1, k));
      if (ids.size() == per_batch || k == rows) c.create(ids), ids.clear();
    }
    c.bytes = (resident() - before) / double(rows);
  }

  std::mt19937_64 random(7);
  zipf const draw(double(rows), 1.05);
  // Turns of many batches: each contestant has the caches to itself for a while, as a server has.
  for (double const end = now() + seconds * double(all.size()); now() < end;) {
    std::vector<std::vector<std::uint64_t>> batches(64, std::vector<std::uint64_t>(per_batch)), distinct;
    for (auto& ids : batches) {
      for (auto& id : ids) id = draw(random);
      distinct.push_back(edl::sparse::sum_duplicates(ids, gradients, width).ids);
    }
    for (contestant& c : all)
      for (std::size_t i = 0; i < batches.size(); ++i) {
        double const a = now();
        c.pull(batches[i], values.data());
        double const b = now();
        c.push(distinct[i], gradients.data());
        double const e = now();
        c.pulling += b - a, c.pushing += e - b;
        c.pulled += double(batches[i].size()), c.pushed += double(distinct[i].size());
      }
  }
  // What memory allows: every row's 64 bytes copied from a random place, whose address is known.
  std::vector<stored> heap(rows);
  double copying = 0, copied = 0;
  for (double const end = now() + seconds; now() < end;) {
    std::vector<std::uint32_t> places(per_batch);
    for (auto& p : places) p = std::uint32_t(draw(random) % rows);
    double const a = now();
    for (std::size_t i = 0; i < per_batch; ++i)
      std::memcpy(&values[i * width], heap[places[i]].weights.data(), 64);
    copying += now() - a, copied += double(per_batch);
  }
  fmt::print("{} rows of {} values and as many of Adagrad's: 128 bytes; batches of {} ids\n", rows, width,
             per_batch);
  fmt::print("{:20} {:>12} {:>12} {:>10}\n", "", "M pulled/s", "M pushed/s", "bytes/row");
  for (contestant const& c : all)
    fmt::print("{:20} {:12.2f} {:12.2f} {:10.1f}\n", c.name, c.pulled / c.pulling / 1e6,
               c.pushed / c.pushing / 1e6, c.bytes);
  fmt::print("{:20} {:12.2f}\n", "copies alone", copied / copying / 1e6);
  fmt::print("the table's own account: {:.1f} bytes a row, {:.3f} of the payload\n",
             double(table.bytes()) / double(rows), double(table.bytes()) / double(table.payload()));
}
