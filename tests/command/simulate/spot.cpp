// SPDX-License-Identifier: Apache-2.0
#include "simulate/spot.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "edl/core/error.hpp"
#include "simulate/spot_policies.hpp"

namespace spot_test {

using namespace edl::simulate;
namespace fs = std::filesystem;

namespace {

struct folder {
  fs::path at = fs::temp_directory_path() / ("edl-spot-" + std::to_string(::getpid()));
  folder() { fs::create_directories(at); }
  ~folder() { fs::remove_all(at); }
  std::string file(std::string const& name, std::string const& text) const {
    std::ofstream(at / name) << text;
    return (at / name).string();
  }
  std::string prefix() const { return (at / "m").string(); }
  std::string refusal(std::string const& there, std::string const& prices, std::string const& dear = "50") {
    file("m-available.csv", there);
    file("m-prices.csv", prices);
    try {
      read_spot(prefix(), 600, dear, false);
    } catch (edl::usage_error const& e) {
      std::string const text = e.what();
      return text.substr(text.find("m-") == text.npos ? 0 : text.find("m-"));
    }
    return "read";
  }
};

spot_zone zone(std::string name, double price, std::vector<char> up) {
  spot_zone z{.name = name, .region = name, .continent = name.substr(0, 2), .on_demand = 60, .up{}, .price{}};
  z.price.assign(up.size(), price);
  z.up = std::move(up);
  return z;
}

// Zones that come and go at random.
spot_trace random_trace(unsigned seed, int zones, int ticks) {
  std::mt19937 random(seed);
  auto const draw = [&] { return double(random()) / 4294967296.0; };
  spot_trace all{.tick = 600, .zones{}};
  for (int z = 0; z < zones; ++z) {
    double const changes = 0.02 + 0.3 * draw();
    std::vector<char> up{char(draw() < 0.5)};
    for (int t = 1; t < ticks; ++t) up.push_back(draw() < changes ? char(!up.back()) : up.back());
    all.zones.push_back(
        zone(z % 2 ? "us" + std::to_string(z) : "eu" + std::to_string(z), 10 + 20 * draw(), up));
  }
  return all;
}

// All decisions of every tick, tried one after the other: the least cost from tick t on.
struct everything {
  spot_trace const& trace;
  spot_case const& what;
  spot_rules const& by;
  double from(int t, int at, bool dear, double standing, double left, int last) const {
    if (left <= 1e-6) return 0;
    if (t == what.ticks) return std::numeric_limits<double>::infinity();
    double best = from(t + 1, -1, false, 0, left, last);
    for (int z = 0; z < int(what.zones.size()); ++z)
      for (bool d : {false, true}) {
        spot_zone const& to = trace.zones[std::size_t(z)];
        if (!d && !to.up[std::size_t(t)]) continue;
        bool const stays = at == z && dear == d;
        double const still = stays ? standing : by.standstill;
        double const usd = last >= 0 && last != z ? by.egress * what.gigabytes : 0;
        double const work = std::max(0.0, trace.tick - still),
                     price = (d ? to.on_demand : to.price[0]) / 3600;
        bool const ends = work >= left;
        double const paid = (ends ? still + left : trace.tick) * price + usd;
        best = std::min(
            best, paid + from(t + 1, z, d, std::max(0.0, still - trace.tick), ends ? 0 : left - work, z));
      }
    return best;
  }
};

std::string shared() {
  char const* data = std::getenv("EDL_TEST_DATA");
  std::string const path = (data ? std::string(data) : "../shared/data") + "/spot";
  if (fs::exists(path + "/h100-available.csv.xz")) return path;
  MESSAGE("skipped: there are no traces of spot markets in " << path);
  return "";
}

}  // namespace

TEST_CASE("a trace is read, with prices of zones or of ticks") {
  folder f;
  f.file("m-available.csv",
         "time,us-east1-a,eu-1b,no-c\n2025-01-01 00:00:00,1,0,1\n2025-01-01T00:05:00,0,1,1\n");
  f.file("m-prices.csv", "zone,spot_usd_per_hour\neu-1b,7\nus-east1-a,5.5\n");
  spot_trace const t = read_spot(f.prefix(), 600, "60,eu=70", false);
  CHECK(t.tick == 300);
  REQUIRE(t.zones.size() == 2);
  CHECK(t.zones[0].region == "us-east1");
  CHECK(t.zones[1].region == "eu-1");
  CHECK(t.zones[1].continent == "eu");
  CHECK(t.zones[0].on_demand == 60);
  CHECK(t.zones[1].on_demand == 70);
  CHECK(t.zones[0].up == std::vector<char>{1, 0});
  CHECK(read_spot(f.prefix(), 600, "60", true).zones[0].up == std::vector<char>{0, 1});
  f.file("m-prices.csv", "tick,eu-1b\n0,7\n1,8\n");
  CHECK(read_spot(f.prefix(), 600, "60", false).zones[0].price == std::vector<double>{7, 8});
}

TEST_CASE("numbers of a trace are bounded, and errors name file and line") {
  folder f;
  std::string const good = "tick,a\n0,1\n1,0\n", price = "zone,spot_usd_per_hour\na,7\n";
  CHECK(f.refusal(good, price) == "read");
  CHECK(f.refusal("", price).starts_with("m-available.csv: is empty"));
  CHECK(f.refusal("tick,a\n0,1\n", price).starts_with("m-available.csv: needs at least two lines"));
  CHECK(f.refusal("tick,a\n0,1\n2,0\n", price) ==
        "m-available.csv:3: tick '2' does not follow that of the line before");
  CHECK(f.refusal("time,a\n2025-01-01 00:00:00,1\n2025-01-01 00:00:00,1\n", price)
            .starts_with("m-available.csv:3: time"));
  CHECK(f.refusal("time,a\nnoon,1\n2025-01-01 00:00:00,1\n", price)
            .starts_with("m-available.csv:2: 'noon' is no time"));
  CHECK(f.refusal("when,a\n0,1\n1,1\n", price).starts_with("m-available.csv:1: the first column"));
  CHECK(f.refusal("tick,a\n0,1\n1,0.5\n", price) == "m-available.csv:3: '0.5' of a is neither 0 nor 1");
  CHECK(f.refusal("tick,a\n0,1\n1,nan\n", price).starts_with("m-available.csv:3: 'nan' is no a"));
  CHECK(f.refusal("tick,a\n0,1\n1\n", price).starts_with("m-available.csv:3: has 1 fields"));
  CHECK(f.refusal(good, "zone,spot_usd_per_hour\na,-7\n")
            .starts_with("m-prices.csv:2: '-7' is no spot_usd_per_hour"));
  CHECK(f.refusal(good, "zone,spot_usd_per_hour\na,0\n")
            .starts_with("m-prices.csv:2: '0' is no spot_usd_per_hour"));
  CHECK(f.refusal(good, "zone,usd\na,7\n").starts_with("m-prices.csv:1: column 'spot_usd_per_hour'"));
  CHECK(f.refusal(good, "tick,a\n0,7\n").starts_with("m-prices.csv: has 1 lines of prices"));
  CHECK(f.refusal(good, "zone,spot_usd_per_hour\nb,7\n").ends_with("have no zone in common"));
  CHECK(f.refusal(good, price, "nan") == "--on_demand: 'nan' is no price above 0");
  CHECK(f.refusal(good, price, "b=5") == "--on_demand: gives no price for a");
}

TEST_CASE("an optimum that needs more memory than a machine has is refused") {
  spot_trace const trace{.tick = 600, .zones = {zone("a", 7, {1, 1})}};
  spot_case const c{.name = "all", .zones = {0}, .ticks = 1'000'000, .work = 3600.0 * 1e6};
  CHECK_THROWS_WITH_AS(spot_optimum(trace, c, {.standstill = 6e8}), doctest::Contains("needs more than 4 GB"),
                       edl::usage_error);
}

TEST_CASE("the optimum is that of all decisions, tried one by one") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    spot_trace const t = random_trace(seed, 2, 7);
    spot_case c{.name = "", .zones = {0, 1}, .ticks = 7, .work = 1800.0 + 100 * (seed % 5), .gigabytes = 10};
    spot_rules const by{.standstill = seed % 3 == 0 ? 700.0 : 200.0, .egress = 0.1};
    double const least = everything{t, c, by}.from(0, -1, false, 0, c.work, -1);
    CHECK(spot_optimum(t, c, by, 6) == doctest::Approx(least).epsilon(1e-9));
  }
}

TEST_CASE("no policy is cheaper than the optimum, and none misses a deadline") {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    spot_trace const t = random_trace(seed, 4, 120);
    spot_case c{.name = "", .zones = {0, 1, 2, 3}, .ticks = 120, .gigabytes = seed % 2 ? 50.0 : 500.0};
    spot_rules by{.standstill = seed % 3 == 0 ? 720.0 : 3.0};
    if (seed % 3) by.same_region = 9.7, by.same_continent = 8.2, by.else_ = 3.6;
    c.work = 72000 / (1.03 + 0.02 * seed);
    double const least = spot_optimum(t, c, by, 10);
    spot_job const empty(t, c, by);
    edl_policy edl(empty);
    skynomad sky(empty);
    uniform_progress up(false);
    for (spot_job::strategy* s : std::initializer_list<spot_job::strategy*>{&edl, &sky, &up}) {
      spot_job job(t, c, by);
      spot_result const r = job.run(*s);
      if (s == &edl || seed % 3 == 0) CHECK_FALSE(r.missed);  // theirs knows no time of a transfer
      if (!r.missed) CHECK(r.cost >= least - 1e-6);
    }
  }
}

TEST_CASE("edl's policy sees the past only") {
  spot_trace const a = random_trace(5, 3, 100);
  spot_trace b = random_trace(6, 3, 100);
  for (std::size_t z = 0; z < 3; ++z) {
    b.zones[z].price = a.zones[z].price;
    std::copy_n(a.zones[z].up.begin(), 50, b.zones[z].up.begin());
  }
  spot_case const c{.name = "", .zones = {0, 1, 2}, .ticks = 100, .work = 45000, .gigabytes = 50};
  std::vector<std::vector<double>> progress;
  for (spot_trace const* t : std::initializer_list<spot_trace const*>{&a, &b}) {
    spot_job job(*t, c, {});
    edl_policy p(job);
    job.run(p);
    progress.emplace_back(job.progress().begin(), job.progress().begin() + 49);
  }
  CHECK(progress[0] == progress[1]);
}

TEST_CASE("published costs are reproduced") {
  std::string const path = shared();
  if (path.empty()) return;
  folder f;
  for (std::string const name : {"h100-available", "h100-prices", "published-deadline_sensitivity"})
    if (std::system(
            ("xz -dkc '" + path + "/" + name + ".csv.xz' >'" + (f.at / name).string() + ".csv'").c_str())) {
      MESSAGE("skipped: xz cannot unpack " << name);
      return;
    }
  spot_trace const t = read_spot((f.at / "h100").string(), 600,
                                 "82.525437,europe-west1=90.8687,europe-west3=97.38,asia-southeast1=107.0077,"
                                 "asia-south2=99.1213",
                                 true);
  std::vector<spot_case> all = read_published((f.at / "published-deadline_sensitivity.csv").string(), t);
  CHECK(all.size() == 54);  // nine deadlines of six windows
  std::erase_if(all, [](spot_case const& c) { return c.name != "Global Diverse (6), 50 GB, 1.2"; });
  REQUIRE(all.size() == 6);
  for (spot_case const& c : all) {
    spot_job one(t, c, {}), two(t, c, {});
    uniform_progress up(false);
    skynomad sky(two);
    CHECK(one.run(up).published == doctest::Approx(c.published[uniform_anywhere]).epsilon(1e-6));
    CHECK(two.run(sky).published == doctest::Approx(c.published[published_skynomad]).epsilon(1e-6));
  }
  CHECK(spot_optimum(t, all[0], {}, 5) == doctest::Approx(all[0].published[optimal]).epsilon(0.01));
}

}  // namespace spot_test
