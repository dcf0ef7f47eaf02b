// SPDX-License-Identifier: Apache-2.0
#include "world/fault.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace simulation {
namespace {

using enum fault::kind;

constexpr std::array names{"kill",      "terminate", "stop",         "hang",     "power",   "cut",
                           "isolate",   "reset",     "delay",        "strand",   "swallow", "one_way",
                           "slow_disk", "full_disk", "failing_disk", "journal",  "clock",   "workers",
                           "servers",   "lose",      "old_end",      "blackout", "halves",  "notice"};

/// Moments at which little is as it was before.
constexpr char const* told[]{"joined",     "is lost",       "Going",       "World",
                             "Scaling",    "Checkpoint of", "Evaluation ", "model writ",
                             "model writ", "model writ",    "is started"};
constexpr char const* calls[]{"send", "connect", "fsync", "rename", "start", "line"};

double seconds(milliseconds t) { return double(t.count()) / 1000; }

milliseconds from_seconds(std::string const& text) {
  char* end = nullptr;
  double const s = std::strtod(text.c_str(), &end);
  if (text.empty() || *end) throw std::invalid_argument("'" + text + "' is no number of seconds");
  return milliseconds(std::llround(s * 1000));
}

fault parse_fault(std::string const& text) {
  std::istringstream in(text);
  std::string word;
  fault f;
  in >> word;
  f.at = from_seconds(word);
  in >> word;
  auto const name = std::ranges::find_if(names, [&](char const* n) { return word == n; });
  if (name == names.end()) throw std::invalid_argument("'" + word + "' is no fault");
  f.what = fault::kind(name - names.begin());
  while (in >> word) {
    std::string value;
    if (word == "for" && in >> value)
      f.length = from_seconds(value);
    else if (word == "number" && in >> value)
      f.number = std::strtoull(value.c_str(), nullptr, 10);
    else if (word == "after" && in >> value)
      f.on.later = from_seconds(value);
    else if (word == "on" && in >> f.on.what >> f.on.of >> f.on.nth)
      std::ranges::replace(f.on.what, '_', ' ');
    else
      (f.place.empty() ? f.place : f.other) = word;
  }
  return f;
}

/// Draws one fault after the other.
class drawing {
 public:
  explicit drawing(plan const& of)
      : plan_(of),
        d_(of.seed, 2),
        more_(of.seed, 5),
        newer_(of.seed, 7),
        newest_(of.seed, 11),
        aimed_(40 * d_.below(3)) {
    if (d_.one_in(2)) return;
    for (auto& [kind, weight] : weights_)  // few kinds, often, meet what many do not
      if (kind != kill && d_.below(3) > 0) weight = 0;
  }

  std::vector<fault> all() {
    milliseconds at(d_.between(100, 3000)), before(0);
    int const most = int(1 + d_.below(plan_.harsh ? 24 : 14));
    for (int i = 0; i < most && at < plan_.quiet; ++i) {
      fault f = draw();
      f.at = at;
      // Who hangs may do so until somebody ends it.
      if (f.what != hang) f.length = std::min(f.length, plan_.quiet - at);
      if (d_.below(100) < aimed_) {
        if (d_.one_in(3)) f = complete({.at = f.at, .what = d_.one_in(2) ? kill : reset});
        if (d_.one_in(2)) f.at = before;  // what that has brought about
        aim(f);
      }
      before = at;
      out_.push_back(f);
      bool const size = f.what == workers || f.what == servers;
      if (d_.one_in(size ? 2 : 6)) {  // once more, soon, or somewhere else
        if (size || d_.one_in(2)) f = complete({.what = f.what, .on = f.on});
        f.at = at + milliseconds(d_.one_in(2) ? 0 : d_.between(1, 1500));
        if (f.what == hang || f.end() <= plan_.quiet) out_.push_back(f);
      }
      at += plan_.harsh || d_.one_in(4)
                ? milliseconds(d_.between(0, 2000))
                : std::min(f.length, milliseconds(8'000)) + milliseconds(d_.between(300, 5000));
    }
    for (fault const& f : std::vector(out_)) follow(f);
    // Who stands still is given up, and writes on: that meets who has taken its place.
    if (plan_.has_servers() && more_.one_in(plan_.elsewhere ? 2 : 6)) pause_amid_write();
    if (!plan_.has_servers() && plan_.workers > 1 && more_.one_in(3)) silence_amid_world();
    if (plan_.launched && more_.one_in(4)) stay_amid_scaling();
    if (plan_.has_servers() && more_.one_in(4)) damage_amid_recovery();
    if (plan_.has_servers() && !plan_.launched && more_.one_in(4)) drain_amid_absence();
    if (plan_.kept > 0 && more_.one_in(4)) fail_amid_checkpoint();
    if (plan_.has_servers() && plan_.launched && more_.one_in(4)) resize_again();
    lose_answers();
    if (!plan_.launched && newer_.one_in(8)) end_all_at_once();
    bool const may_part = plan_.has_servers() ? plan_.copies > 1 : plan_.workers > 1;
    if (!plan_.launched && may_part && newer_.one_in(2)) part();
    if (newest_.one_in(3)) give_notice();
    std::ranges::stable_sort(out_, {}, &fault::at);
    return out_;
  }

 private:
  std::string worker() { return fmt::format("worker-{}", d_.below(std::uint64_t(plan_.workers))); }
  std::string server() { return fmt::format("server-{}", d_.below(std::uint64_t(plan_.servers))); }
  std::string place() {
    std::uint64_t const which = d_.below(10);
    if (which < 2) return "master";
    return which < 6 && plan_.has_servers() ? server() : worker();
  }
  std::string other_than(std::string const& one) {
    for (;;)
      if (std::string two = place(); two != one || plan_.workers + plan_.servers == 1)
        return two == one ? "master" : two;
  }
  milliseconds some_time() {
    switch (d_.below(5)) {
      case 0:
        return milliseconds(d_.between(50, 1000));
      case 1:
        return milliseconds(d_.between(1000, 4000));
      case 2:
        return milliseconds(d_.between(4000, 12'000));
      case 3:
        return milliseconds(d_.between(12'000, 35'000));
      default:
        return milliseconds(d_.between(2000, 8000));
    }
  }

  std::string one_of(char const* role, int of) {
    return fmt::format("{}-{}", role, more_.below(std::uint64_t(of)));
  }

  /// A server stands still while it writes, and something happens before it goes on: there files and
  /// decisions meet.
  void pause_amid_write() {
    fault pause{
        .at = milliseconds(more_.between(500, 8000)), .what = stop, .place = one_of("server", plan_.servers)};
    bool const soon = more_.one_in(plan_.elsewhere ? 6 : 2);
    pause.length = milliseconds(soon ? more_.between(1500, 5000) : more_.between(5000, 30'000));
    pause.on = {.what = "fsync", .of = pause.place, .nth = 1 + more_.below(6)};
    out_.push_back(pause);
    fault next{.at = pause.at, .what = more_.one_in(2) ? terminate : kill, .on = pause.on};
    next.place = next.what == kill ? one_of("server", plan_.servers) : one_of("worker", plan_.workers);
    next.on.later = milliseconds(more_.between(300, std::min<std::int64_t>(pause.length.count(), 5000)));
    if (next.place != pause.place) out_.push_back(next);
  }

  /// While workers form a world, and a newcomer takes its copy, one of them or the master falls silent. After
  /// a master's loss newcomers are of the next world at once, and copy while all wait for them.
  void silence_amid_world() {
    auto const workers = std::uint64_t(plan_.workers);
    std::uint64_t const one = more_.below(workers);
    milliseconds const at(more_.between(500, 6000));
    fault next{.at = at, .what = stop, .place = fmt::format("worker-{}", one), .on = {.of = "master"}};
    next.length = milliseconds(more_.between(3000, 40'000));
    if (plan_.workers > 2 && more_.one_in(6)) {  // two that cannot reach each other hinder world after world
      fault apart{.at = at, .what = cut, .place = next.place};
      apart.other = fmt::format("worker-{}", (one + 1 + more_.below(workers - 1)) % workers);
      apart.length = milliseconds(more_.between(12'000, 60'000));
      out_.push_back(apart);
      next.on.what = "it misses", next.on.nth = 1 + more_.below(4);
      if (more_.one_in(2)) next.what = isolate, next.place = "master";
    } else {
      if (more_.below(4) > 0)
        out_.push_back({.at = at, .what = kill, .place = one_of("worker", plan_.workers)});
      if (more_.one_in(2))
        out_.push_back({.at = at + milliseconds(more_.between(0, 500)), .place = "master"});
      next.on.what = "(new)", next.on.nth = more_.one_in(2) ? 1 : 1 + more_.below(4);
      std::uint64_t const how = more_.below(6);
      if (how < 2) next.what = how == 0 ? isolate : power;
    }
    // It takes a dozen ways there and back, and pauses of 20 ms.
    std::int64_t const ways = 25 * plan_.latency.count() / 1000;
    next.on.later = milliseconds(more_.one_in(4) ? more_.between(0, 1000) : more_.between(0, 20 + ways));
    out_.push_back(next);
  }

  /// Who is to go stands still, and does not leave by itself; the master is lost as it gives its orders.
  void stay_amid_scaling() {
    bool const of_servers = plan_.has_servers() && more_.one_in(3);
    int const there = of_servers ? plan_.servers : plan_.workers, least = of_servers ? plan_.copies : 1;
    if (there <= least) return;
    milliseconds const at(more_.between(1000, 10'000));
    fault const fewer{.at = at,
                      .what = of_servers ? servers : workers,
                      .number = std::uint64_t(more_.between(least, there - 1))};
    fault stays{.at = at - milliseconds(more_.between(0, 1000)),
                .what = more_.one_in(2) && !of_servers ? hang : stop};
    stays.place = fmt::format("{}-{}", of_servers ? "server" : "worker", there - 1);
    stays.length = milliseconds(stays.what == hang ? 3'600'000 : more_.between(10'000, 35'000));
    fault lost{.at = at, .what = kill, .place = "master", .on = {.what = "Scaling", .of = "master"}};
    lost.on.later = milliseconds(more_.between(0, 30));
    for (fault const& f : {fewer, stays, lost}) out_.push_back(f);
  }

  /// Servers are replaced as the storage goes bad: the master's successor knows less than its members, and
  /// looks for checkpoints for long.
  void damage_amid_recovery() {
    milliseconds const at(more_.between(2000, 12'000));
    for (int n = more_.one_in(3) ? 2 : 1; n > 0; --n)
      out_.push_back({.at = at, .what = kill, .place = one_of("server", plan_.servers)});
    fault damaged{.at = at, .what = journal, .number = more_.below(1'000'000)};
    damaged.on = {.what = more_.one_in(2) ? "is lost" : "Going back", .of = "master"};
    damaged.on.later = milliseconds(more_.between(0, 1ll << more_.between(3, 9)));
    out_.push_back(damaged);
    if (more_.one_in(4)) return;
    fault slow{
        .at = at, .what = slow_disk, .number = std::uint64_t(more_.between(4000, 20'000)), .on = damaged.on};
    slow.length = milliseconds(more_.between(4000, 25'000));
    out_.push_back(slow);
  }

  /// A server is away for long, nobody takes its place so soon, and another node is drained meanwhile.
  void drain_amid_absence() {
    fault away{.at = milliseconds(more_.between(1000, 12'000)), .what = more_.one_in(2) ? stop : power};
    away.place = one_of("server", plan_.servers);
    away.length = milliseconds(more_.between(25'000, 60'000));
    out_.push_back(away);
    milliseconds const later(more_.between(500, 15'000));
    out_.push_back({.at = away.at + later, .what = terminate, .place = one_of("worker", plan_.workers)});
  }

  /// The storage fails as soon as something is written: what comes next, or is removed for it, is not.
  void fail_amid_checkpoint() {
    fault bad{.at = milliseconds(more_.between(500, 8000)), .what = failing_disk, .number = 100};
    bad.length = milliseconds(more_.between(20, 3000));
    bad.on = {.what = more_.below(4) > 0 ? "fsync" : "rename", .of = "master", .nth = 1 + more_.below(16)};
    out_.push_back(bad);
  }

  /// Servers are to be more, or fewer, before the last size is reached. Meanwhile orders are late, or lost.
  void resize_again() {
    milliseconds at(more_.between(1000, 12'000));
    for (std::int64_t n = more_.between(2, 4); n > 0; --n) {
      out_.push_back(
          {.at = at, .what = servers, .number = std::uint64_t(plan_.copies + more_.between(0, 2))});
      fault late{.at = at, .what = more_.one_in(2) ? delay : reset, .place = "master", .other = "launcher"};
      if (late.what == delay) {
        late.number = std::uint64_t(more_.between(20, 800));
        late.length = milliseconds(more_.between(500, 5000));
      } else {
        if (more_.one_in(2)) late.what = kill, late.other.clear();
        late.on = {.what = more_.one_in(2) ? "Scaling" : "is not needed", .of = "master"};
        late.on.later = milliseconds(more_.between(0, 1ll << more_.between(2, 11)));
      }
      if (more_.below(3) > 0) out_.push_back(late);
      at += milliseconds(more_.between(0, 1ll << more_.between(1, 11)));
    }
  }

  /// Single answers are lost, and old ends of connections come late: that is nobody's end.
  void lose_answers() {
    for (std::uint64_t n = newer_.one_in(2) ? 0 : 1 + newer_.below(4); n > 0; --n) {
      fault f{.at = milliseconds(newer_.between(500, 20'000)), .what = newer_.one_in(3) ? old_end : lose};
      bool const of_server = plan_.has_servers() && newer_.one_in(2);
      std::string const caller = plan_.has_servers() && newer_.one_in(3)
                                     ? fmt::format("server-{}", newer_.below(std::uint64_t(plan_.servers)))
                                     : fmt::format("worker-{}", newer_.below(std::uint64_t(plan_.workers)));
      std::string const served = of_server && f.what == lose
                                     ? fmt::format("server-{}", newer_.below(std::uint64_t(plan_.servers)))
                                     : std::string("master");
      if (caller == served) continue;
      f.place = f.what == lose ? served : caller;
      f.other = f.what == lose ? caller : served;
      if (f.what == old_end) f.length = milliseconds(newer_.between(200, 3500));
      if (f.end() < plan_.quiet) out_.push_back(f);
    }
  }

  /// The storage's own crash, with all that use it.
  void end_all_at_once() {
    fault f{.at = milliseconds(newer_.between(2000, 20'000)), .what = blackout};
    if (newer_.one_in(2))
      f.on = {
          .what = newer_.one_in(2) ? "Checkpoint of" : "rename", .of = "master", .nth = 1 + newer_.below(6)};
    if (newer_.one_in(2)) f.on.later = milliseconds(newer_.between(0, 300));
    if (f.at < plan_.quiet) out_.push_back(f);
  }

  /// A node is cut off, with the master and some of the members, and does not come back.
  void part() {
    auto const members = std::uint64_t(plan_.servers + plan_.workers);
    bool const both = newer_.one_in(2);
    fault f{.at = milliseconds(newer_.between(1000, 8000)), .what = halves};
    // Long enough for the other half's members to be given up, or for their master to take the storage.
    auto const least = milliseconds(both ? 20'000 : 6000), most = plan_.quiet - f.at - milliseconds(500);
    if (most < least) return;
    f.length = milliseconds(newer_.between(least.count(), std::min(most, 2 * least).count()));
    // One that keeps the model, and one that trains, at least; and not all.
    std::uint64_t const keeps =
                            newer_.below(std::uint64_t(plan_.has_servers() ? plan_.servers : plan_.workers)),
                        trains = std::uint64_t(plan_.servers) + newer_.below(std::uint64_t(plan_.workers));
    f.number = 1ull << keeps | 1ull << trains | (newer_.next() & newer_.next() & ((1ull << members) - 1));
    if (f.number == (1ull << members) - 1) f.number = 1ull << keeps | 1ull << trains;
    if (both) f.number |= 1ull << 32;
    out_.push_back(f);
  }

  /// Machines are about to be taken away, perhaps of a whole zone at once; and while their processes hand
  /// over, the master or one that is to take over is lost, or the notice comes too late.
  void give_notice() {
    auto const one_of = [&](char const* role, int n) {
      return fmt::format("{}-{}", role, newest_.below(std::uint64_t(n)));
    };
    auto const someone = [&] {
      return plan_.has_servers() && newest_.one_in(2) ? one_of("server", plan_.servers)
                                                      : one_of("worker", plan_.workers);
    };
    milliseconds at(newest_.between(1000, 12'000));
    for (std::int64_t n = newest_.between(1, 4); n > 0; --n) {
      fault f{.at = at, .what = notice, .place = someone()};
      f.length = milliseconds(newest_.one_in(3) ? newest_.between(100, 3000) : newest_.between(3000, 30'000));
      f.length = std::min(f.length, plan_.quiet - at);
      if (f.length <= milliseconds(0)) return;
      if (newest_.one_in(4))
        f.on = {.what = told[newest_.below(std::size(told))], .of = "master", .nth = 1 + newest_.below(3)};
      out_.push_back(f);
      if (newest_.one_in(3)) {
        fault next{.at = at, .place = newest_.one_in(2) ? "master" : someone()};
        next.on = {.what = newest_.one_in(2) ? "is about to leave" : "is started", .of = "master"};
        next.on.later = milliseconds(newest_.between(0, 1ll << newest_.between(2, 11)));
        out_.push_back(next);
      }
      if (newest_.one_in(2)) at += milliseconds(newest_.between(0, 1ll << newest_.between(6, 13)));
    }
  }

  /// What comes amid what another fault has begun.
  void follow(fault const& f) {
    auto const moment = [&](char const* line, std::int64_t latest) {
      fault next{.at = f.at, .what = kill, .place = "master", .on = {.what = line, .of = "master"}};
      next.on.later = milliseconds(more_.between(0, latest));
      if (plan_.launched && more_.one_in(2)) next.what = reset, next.other = "launcher";
      out_.push_back(next);
    };
    // What has been decided is being carried out: some of it is, or is only on its way.
    if ((f.what == workers || f.what == servers) && more_.one_in(2)) return moment("Scaling", 30);
    if (f.what == kill && f.place != "master" && plan_.launched && more_.one_in(4))
      return moment("is started", 5);
    // Others wait for who is away, or for a disk. People lose their patience, and one trouble does not end
    // the next.
    milliseconds const lasts = std::min(f.length, milliseconds(20'000));
    bool const without = f.place.starts_with("server") && f.length >= milliseconds(20'000);
    if (lasts < milliseconds(3000) || f.what == clock || !more_.one_in(without ? 2 : 4)) return;
    bool const told = more_.one_in(2);
    fault next{.at = f.at, .what = told ? terminate : kill, .on = f.on};
    next.place = !told && plan_.has_servers() && more_.one_in(2) ? one_of("server", plan_.servers)
                                                                 : one_of("worker", plan_.workers);
    if (next.place == f.place || next.place == f.other) return;
    auto const later = milliseconds(more_.between(300, lasts.count()));
    f.on.what.empty() ? next.at += later : next.on.later += later;
    if (next.at < plan_.quiet) out_.push_back(next);
  }

  /// At a moment instead of a time.
  void aim(fault& f) {
    bool const says = d_.one_in(2), last = d_.one_in(4);
    f.on.what = last ? "end" : says ? told[d_.below(std::size(told))] : calls[d_.below(std::size(calls))];
    f.on.of = last || says || d_.one_in(3) ? "master" : f.place.empty() || d_.one_in(4) ? place() : f.place;
    if (!f.other.empty() && !last && f.on.of != f.place && f.on.of != f.other) f.on.of = f.other;
    bool const often = f.on.what == "send" || f.on.what == "line";
    f.on.nth =
        last || f.on.what == "start" || d_.one_in(2) ? 1 : 1 + d_.below(often && d_.one_in(2) ? 100 : 6);
    // Calls take milliseconds, and what they bring about takes seconds.
    if (last || d_.one_in(2)) f.on.later = milliseconds(d_.between(1, 1ll << d_.between(1, last ? 12 : 11)));
    if (f.what == reset && d_.one_in(2)) f.length = milliseconds(d_.between(0, 50));
  }

  fault draw() {
    int sum = 0;
    for (auto const& w : weights_) sum += w.second;
    int at = int(d_.below(std::uint64_t(sum)));
    fault f;
    for (auto const& [kind, weight] : weights_)
      if ((at -= weight) < 0) {
        f.what = kind;
        break;
      }
    return complete(f);
  }

  fault complete(fault f) {
    switch (f.what) {
      case kill:
        f.place = d_.one_in(4) ? "master" : place();
        break;
      case terminate:
        f.place = worker();  // of servers and masters it is as a kill, or the end of the job
        break;
      case stop:
      case isolate:
        f.place = f.what == isolate && d_.one_in(3) ? "master" : place();
        f.length = some_time();
        break;
      case power:
        f.place = place();
        f.length = milliseconds(d_.between(1000, 60'000));
        break;
      case hang:
        f.place = worker();
        f.length = milliseconds(d_.one_in(2) ? 3'600'000 : d_.between(500, 3000));  // the limit is 20 passes
        break;
      case cut:
      case reset:
      case delay:
      case strand:
      case swallow:
      case one_way:
        f.place = place();
        f.other = other_than(f.place);
        f.length = f.what == reset                         ? milliseconds(d_.between(50, 1500))
                   : f.what == strand || f.what == swallow ? milliseconds(0)
                                                           : some_time();
        f.number = std::uint64_t(d_.between(20, 800));
        // Calls to others may take minutes.
        if (f.what == swallow && f.place != "master") f.other = std::exchange(f.place, "master");
        // So that answers are under way when the connections end.
        if (f.what == reset) f.number = std::uint64_t(d_.between(5, 250));
        if (f.what == reset && d_.one_in(2)) f.place = worker(), f.other = "master";
        if (plan_.launched && f.what == reset && d_.one_in(5)) f.place = "master", f.other = "launcher";
        break;
      case slow_disk:
        f.length = some_time();
        f.number = std::uint64_t(d_.between(300, 20'000));
        break;
      case full_disk:
      case failing_disk:
        f.length = milliseconds(d_.between(200, 6000));
        if (f.what == full_disk) break;
        f.number = std::uint64_t(d_.one_in(2) ? 100 : d_.between(5, 80));
        if (f.number < 100) f.length = some_time();
        break;
      case journal:
        f.number = d_.below(1'000'000);
        break;
      case clock:
        f.place = place();
        f.length = some_time();
        f.number = std::uint64_t(d_.one_in(2) ? d_.between(1, 100) : d_.between(100, 1'000'000));
        break;
      case workers:
        f.number = 1 + d_.below(5);
        break;
      case servers:
        if (!plan_.has_servers()) return f.what = kill, complete(f);
        f.number = std::uint64_t(plan_.copies) + d_.below(3);
        break;
      case lose:
      case old_end:
      case blackout:
      case halves:
      case notice:
        break;  // drawn elsewhere
    }
    return f;
  }

  plan const& plan_;
  draws d_, more_, newer_, newest_;
  std::uint64_t aimed_;  // of a hundred
  std::pair<fault::kind, int> weights_[19]{{kill, 32},     {terminate, 6}, {stop, 8},         {hang, 3},
                                           {power, 5},     {cut, 8},       {isolate, 7},      {reset, 10},
                                           {delay, 4},     {strand, 5},    {swallow, 3},      {one_way, 4},
                                           {slow_disk, 5}, {full_disk, 2}, {failing_disk, 7}, {journal, 5},
                                           {clock, 1},     {workers, 6},   {servers, 6}};
  std::vector<fault> out_;
};

}  // namespace

char const* name_of(fault::kind what) { return names[std::size_t(what)]; }

std::string to_string(fault const& f) {
  std::string text = fmt::format("{} {}", seconds(f.at), name_of(f.what));
  for (std::string const& place : {f.place, f.other})
    if (!place.empty()) text += " " + place;
  if (f.length.count() > 0) text += fmt::format(" for {}", seconds(f.length));
  if (f.number > 0) text += fmt::format(" number {}", f.number);
  if (f.on.what.empty()) return text;
  std::string what = f.on.what;
  std::ranges::replace(what, ' ', '_');
  text += fmt::format(" on {} {} {}", what, f.on.of, f.on.nth);
  return f.on.later.count() > 0 ? text + fmt::format(" after {}", seconds(f.on.later)) : text;
}

std::string to_string(std::vector<fault> const& all) {
  std::string text;
  for (fault const& f : all) text += (text.empty() ? "" : "; ") + to_string(f);
  return text;
}

std::vector<fault> parse_faults(std::string_view text) {
  std::vector<fault> all;
  while (!text.empty()) {
    auto const end = std::min(text.find(';'), text.size());
    std::string const one(text.substr(0, end));
    if (one.find_first_not_of(' ') != one.npos) all.push_back(parse_fault(one));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::ranges::stable_sort(all, {}, &fault::at);
  return all;
}

std::vector<fault> draw_faults(plan const& of) { return drawing(of).all(); }

}  // namespace simulation
