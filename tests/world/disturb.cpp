// SPDX-License-Identifier: Apache-2.0
// What faults do to a job.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "world/subject.hpp"

namespace simulation {

using namespace std::chrono_literals;
using enum fault::kind;

// Whatever becomes of who is there now, or comes there while it lasts, is no wonder.
void job::touch(std::string const& place, world::duration length) {
  world::duration& until = troubled_[place];
  until = std::max(until, world::now() + length);
  if (process* const p = at(place)) {
    p->hit = true;
    ++p->hits;
    ++applied_;
  }
  if (world::now() >= secluded_) return;
  auto const whole = members_but(place);
  if (whole.size() > 1) return;
  for (process* const p : whole) {
    p->hit = true;
    troubled_[p->place] = std::max(troubled_[p->place], secluded_);
  }
}

// Those of the master whom nothing troubles now.
std::vector<process*> job::members_but(std::string const& place) {
  process const* const master = this->master();
  std::vector<process*> all;
  for (process& m : all_)
    if (master && !m.ended && !m.given_up && m.role != "master" && m.joined == master->number &&
        m.place != place && world::now() >= troubled_[m.place])
      all.push_back(&m);
  return all;
}

// When the job is to have made a step again, at the latest. Others take the place of who is killed or
// stopped, where there is a launcher; other workers need not wait for them. Connections that nobody resets
// are given up after half a minute, and whoever hangs after a minute.
void job::expect(fault const& f) {
  auto const now = world::now();
  bool const others = f.place.starts_with("worker") && std::ranges::any_of(all_, [&](process const& p) {
                        return p.role == "worker" && !p.ended && p.place != f.place &&
                               now >= std::max(troubled_[p.place], absent_[p.place]);
                      });
  bool const replaced = (plan_.launched && f.place != master_at_) || others;
  world::duration length = f.length, more = 90s;
  if (f.what == kill || f.what == terminate || f.what == journal || f.what == notice) more = 25s;
  if (f.what == stop || (f.what == power && others)) {
    more = f.what == power ? 20s : 25s;
    if (f.what == stop && others && !plan_.has_servers()) more = 15s;
    if (replaced) length = std::min<world::duration>(length, 6s);
  }
  if (f.what == lose || f.what == old_end) more = 30s;
  if (f.what == hang) length = std::min<world::duration>(length, 60s);
  if (f.what == stop || f.what == power || f.what == hang)
    absent_[f.place] = std::max(absent_[f.place], now + length);
  // Who stands still does not hinder the master and the launcher.
  bool const still = f.place.starts_with("worker") && (f.what == stop || f.what == hang);
  changed_ = std::max(changed_, still ? now : now + length);
  expected_ = std::max(expected_, now + length + more);
}

void job::meet(fault const& f) {
  parts_ = parts_ || (f.what == halves && !plan_.launched);
  notices_ = notices_ || f.what == notice;
  if (f.on.what.empty())
    world::at(f.at, [this, f] { apply(f); });
  else
    aimed_.push_back({f});
}

// A call, or, without one, a line of a log.
void job::happens(process const& by, std::string_view call, std::string_view on) {
  for (std::size_t i = 0; i < aimed_.size(); ++i) {
    fault f = aimed_[i].what;
    std::string const place = by.role == "master" && !by.replaced ? "master" : by.place;
    if (f.on.of != place || world::now() < f.at) continue;
    if (call != f.on.what && (!call.empty() || (f.on.what != "line" && on.find(f.on.what) == on.npos)))
      continue;
    if ((call == "send" || call == "connect") && !f.other.empty() &&
        on != (place == f.place ? f.other : f.place))
      continue;
    if (++aimed_[i].seen < f.on.nth) continue;
    aimed_.erase(aimed_.begin() + std::ptrdiff_t(i--));
    after(f.on.later, [this, f]() mutable {
      world::duration const left = plan_.quiet - world::now();
      if (left <= 0s) return;
      if (f.what != hang) f.length = std::min(f.length, std::chrono::duration_cast<milliseconds>(left));
      apply(f);
    });
  }
}

void job::on_call(world::call const& c) {
  // What the job went back behind must not become valid afterwards.
  unsigned long long version = 0;
  if (auto const at = c.on.rfind("/version-"); c.what == "rename" && c.on.ends_with("/manifest.json") &&
                                               at != c.on.npos &&
                                               std::sscanf(c.on.data() + at, "/version-%llu", &version) == 1)
    if (process const* const by = find(c.by); !(by && by->replaced)) {
      // One that its master did not live to tell of is valid, and may be written again.
      std::uint64_t const newest = std::max(acknowledged_, valid_);
      if (version > newest + on_the_way())
        find_fault(
            fmt::format("a checkpoint of version {} is valid, and the newest step is {}", version, newest));
      valid_ = std::max<std::uint64_t>(valid_, version);
    }
  if (aimed_.empty()) return;
  if (process const* const by = find(c.by)) happens(*by, c.what, c.on);
}

void job::apply(fault const& of) {
  if (over_) return;
  lines_.say("fault", to_string(of));
  fault f = of;
  for (std::string* const place : {&f.place, &f.other})
    if (*place == "master") *place = master_at_;
  expect(f);
  process* const p = f.place.empty() ? nullptr : at(f.place);
  switch (f.what) {
    case kill:
    case terminate:
      touch(f.place);
      if (!p) break;
      if (f.what == terminate && p->told_to_stop == 0ns) p->told_to_stop = world::now();
      world::kill(p->pid, f.what == kill ? SIGKILL : SIGTERM);
      break;
    case notice:
      touch(f.place);
      if (!p) break;
      p->noticed = true;
      world::write_file(f.place, notice_file, "");
      after(f.length, [place = f.place, pid = p->pid] {
        world::remove_file(place, notice_file);
        if (world::alive(pid)) world::kill(pid, SIGKILL);
      });
      break;
    case stop:
      touch(f.place);
      if (!p) break;
      world::kill(p->pid, SIGSTOP);
      after(f.length, [pid = p->pid] {
        if (world::alive(pid)) world::kill(pid, SIGCONT);
      });
      break;
    case hang:
      touch(f.place);
      if (!p) break;
      hangs_[p->number] = world::now() + f.length;
      if (!plan_.launched)
        after(plan_.longest_hang(), [this, number = p->number, pid = p->pid] {
          if (world::alive(pid) && world::now() < hangs_[number]) world::kill(pid, SIGKILL);
        });
      break;
    case power:
      if (plan_.launched || f.place == master_at_) {  // a launcher is of the same machine
        fault one = f;
        one.what = kill;
        one.length = {};
        return apply(one);
      }
      if (dark_.contains(f.place)) break;
      touch(f.place);
      dark_.insert(f.place);
      world::power_off(f.place);
      after(f.length, [this, place = f.place] {
        world::boot(place);
        dark_.erase(place);
      });
      break;
    case cut:
    case reset:
    case delay:
    case strand:
    case swallow:
    case one_way:
      disturb(f.place, f.other, f);
      break;
    case isolate: {
      // A master that is cut off from all others is to blame none of them. Of one alone it cannot know, nor
      // of an outage so short that it may last twice as long for a connection far away.
      fault one = f;
      one.number = f.place == master_at_ && f.length <= 25s && (f.length > 3s || plan_.latency < 5ms) &&
                   world::now() > troubled_[master_at_] && members_but(f.place).size() > 1;
      if (one.number != 0) secluded_ = std::max(secluded_, world::now() + f.length);
      for (std::string const& other : places())
        if (other != f.place) disturb(f.place, other, one);
      break;
    }
    case slow_disk:
    case full_disk:
    case failing_disk:
      disturb_disk(f);
      break;
    case journal:
      damage_journal(f);
      break;
    case clock:
      world::set_wall_clock(f.place, std::chrono::seconds(f.number));
      after(f.length, [place = f.place] { world::set_wall_clock(place, {}); });
      break;
    case workers:
    case servers:
      scale(f);
      break;
    // These are nobody's end, and nobody is to be given up for them.
    case lose:
      ++applied_;
      // A record that lacks ends the connection, and to have another takes many ways. After one message the
      // call is repeated in 4 s, and must not fail again.
      if (auto const before = std::exchange(losses_[{f.place, f.other}], world::now());
          plan_.tls || (before > world::duration{} && world::now() - before < 6s))
        touch(f.place), touch(f.other);
      world::swallow(f.place, f.other, 1);
      break;
    case old_end:
      ++applied_;
      // 0.2 s are few ways there and back, and there is none to a master that is cut off.
      if (plan_.latency >= 5ms || world::now() < secluded_) touch(f.place);
      world::end_late(f.place, f.other, f.length);
      break;
    case blackout:
      if (plan_.launched) break;
      for (process& one : all_)
        if (!one.ended) touch(one.place), world::kill(one.pid, SIGKILL);
      world::lose_unforced("storage");
      acknowledged_ = written_;  // what has been told of is there, and it need be no more
      break;
    case halves:
      part(f);
      break;
  }
}

void job::disturb(std::string const& a, std::string const& b, fault const& f) {
  // A host without power that comes back while another is isolated does not reach it either.
  bool const dark = dark_.contains(a) || dark_.contains(b);
  if (a == b || (dark && f.what != isolate)) return;
  if (f.what == strand || f.what == swallow) {
    touch(a), touch(b);
    return f.what == strand ? world::strand_connections(a, b) : world::swallow(a, b);
  }
  touch(a, f.length);
  if (f.what != isolate || f.number == 0) touch(b, f.length);
  bool const slow = f.what == delay || f.what == reset;
  milliseconds const latency(slow ? std::min<std::uint64_t>(f.number, 800) : 0);
  auto const to = disturbances_.insert(disturbances_.end(), {a, b, !slow, latency});
  auto const back = disturbances_.insert(to, {b, a, !slow && f.what != one_way, latency});
  relink(a, b);
  after(f.length, [this, a, b, to, back, resets = f.what == reset] {
    disturbances_.erase(to), disturbances_.erase(back);
    relink(a, b);
    if (resets) world::reset_connections(a, b);
  });
}

// Each half goes on as it can. The one with the master is lost in the end, as a node with all of its pods; or
// it stands still, as a node that hangs, is given up, and wakes.
void job::part(fault const& f) {
  if (plan_.launched) return;
  bool const both = (f.number >> 32 & 1) != 0;
  std::vector<std::string> here{master_at_}, there;
  std::uint64_t bit = 1;
  auto const add = [&](char const* role, int n) {
    for (int i = 0; i < n; ++i, bit <<= 1)
      ((f.number & bit) != 0 ? here : there).push_back(fmt::format("{}-{}", role, i));
  };
  add("server", plan_.servers), add("worker", plan_.workers);
  for (std::string const& place : places())
    if (std::ranges::find(here, place) == here.end() && std::ranges::find(there, place) == there.end())
      there.push_back(place);
  fault apart = f;
  apart.what = cut;
  for (std::string const& a : here)
    for (std::string const& b : there) disturb(a, b, apart);
  std::vector<world::pid> half;
  for (std::string const& place : here)
    if (process* const p = at(place)) half.push_back(p->pid);
  process* const old = master();
  if (!both)
    return after(f.length, [this, half, old_at = master_at_] {
      if (over_) return;
      // Steps since the cut that it has not written are lost with it.
      if (std::ranges::any_of(half, world::alive)) acknowledged_ = written_;
      if (process const* const lost = at(old_at); lost && std::ranges::find(half, lost->pid) != half.end())
        lost_master_ = lost->number;
      for (world::pid const one : half)
        if (world::alive(one)) world::kill(one, SIGKILL);
      for (char const* name : {"", ".before", ".before.new"})
        world::remove_file("master", fmt::format("{}/{}.json{}", directory, old_at, name));
    });
  if (!old || old->replaced || over_) return;
  world::disk d = world::get_disk("storage");
  d.blind = true;
  world::set_disk("storage", d);
  for (world::pid const one : half) world::kill(one, SIGSTOP);
  old->replaced = old->given_up = true;
  master_at_ += "x";
  after(3s, [this] {
    if (!over_) launch_master();
  });
  after(f.length, [half] {
    for (world::pid const one : half)
      if (world::alive(one)) world::kill(one, SIGCONT);
  });
}

// What is under way between two places: of several disturbances each lasts as long as it is to.
void job::relink(std::string const& a, std::string const& b) {
  world::link to{.latency = plan_.latency, .jitter = plan_.latency / 2}, back = to;
  for (disturbance const& d : disturbances_) {
    if (!(d.from == a && d.to == b) && !(d.from == b && d.to == a)) continue;
    world::link& one = d.from == a ? to : back;
    one.cut = one.cut || d.cut;
    one.latency = std::max<world::duration>(one.latency, d.latency);
  }
  world::set_link(a, b, to);
  world::set_link(b, a, back);
}

void job::disturb_disk(fault const& f) {
  world::disk d = world::get_disk("storage");
  if (f.what == slow_disk) d.fsync = milliseconds(f.number), d.open = d.fsync / 40;
  if (f.what == full_disk) d.capacity = 0;
  if (f.what == failing_disk) d.io_error = f.number > 0 ? double(f.number) / 100 : 1;
  world::set_disk("storage", d);
  slow_seen_ = true;
  ++applied_;
  auto const now = world::now();
  if (now > disk_bad_until_) disk_bad_since_ = now;
  world::duration const late = f.what == slow_disk ? milliseconds(3 * f.number) : milliseconds(3000);
  disk_bad_until_ = std::max(disk_bad_until_, now + f.length + late);
  if (f.what != slow_disk) disk_trouble_ = std::max(disk_trouble_, world::now() + f.length + 3s);
  after(f.length, [] {
    world::disk const bad = world::get_disk("storage");
    world::set_disk("storage", {.blind = bad.blind});
  });
}

void job::damage_journal(fault const& f) {
  std::string const path =
      std::string(directory) + (plan_.launched ? "/journal" : "/checkpoints/master.json");
  auto content = world::read_file("master", path);
  if (content && !content->empty()) {
    if (f.number % 3 == 0)
      content->resize(content->size() * (f.number % 100) / 100);
    else
      (*content)[f.number % content->size()] ^= char(1u << f.number % 8);
    world::remove_file("master", path);  // the one before may be the same file
    world::write_file("master", path, *content);
    ++applied_;
  }
  touch(master_at_);
  if (process* const p = master()) world::kill(p->pid, SIGKILL);
}

void job::scale(fault const& f) {
  if (!plan_.launched) return;  // by hand nobody stops who goes
  ++applied_;
  std::string const flag = f.what == workers ? "workers" : "servers";
  world::pid const asks = world::start(
      {.name = "scale",
       .host = "launcher",
       .main = scale_main,
       .arguments = {"scale"},
       .environment = {{"SCALE_WHAT", flag},
                       {"SCALE_TO", std::to_string(f.number)},
                       {"WORLD_TLS", plan_.tls ? "1" : "0"},
                       {"SCALE_MASTER", fmt::format("tcp:{}:5000", world::address_of("master"))}}});
  scales_[asks] = f.what;
}

}  // namespace simulation
