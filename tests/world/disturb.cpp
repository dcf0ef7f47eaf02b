// SPDX-License-Identifier: Apache-2.0
// What faults do to a job.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

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
}

// When the job is to have made a step again, at the latest. Others take the place of who is killed or
// stopped, where there is a launcher. Connections that nobody resets are given up after half a minute, and
// whoever hangs after a minute.
void job::expect(fault const& f) {
  bool const replaced = plan_.launched && f.place != "master";
  world::duration length = f.length, more = 90s;
  if (f.what == kill || f.what == terminate || f.what == newcomer || f.what == journal) more = 25s;
  if (f.what == stop || f.what == newcomer_stop) {
    more = 25s;
    if (replaced) length = std::min<world::duration>(length, 6s);
  }
  if (f.what == hang) length = std::min<world::duration>(length, 60s);
  changed_ = world::now() + length;
  expected_ = std::max(expected_, changed_ + more);
}

void job::apply(fault const& f) {
  if (over_) return;
  lines_.say("fault", to_string(f));
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
      if (p) hangs_[p->number] = world::now() + f.length;
      break;
    case power:
      if (plan_.launched || f.place == "master") {  // a launcher is of the same machine
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
    case one_way:
      disturb(f.place, f.other, f);
      break;
    case isolate:
      for (std::string const& other : places())
        if (other != f.place) disturb(f.place, other, f);
      break;
    case slow_disk:
    case full_disk:
    case failing_disk:
      disturb_disk(f);
      break;
    case journal:
      damage_journal(f);
      break;
    case workers:
    case servers:
      scale(f);
      break;
    case newcomer:
    case newcomer_stop:
      for_newcomer_[f.place] = f;
      break;
  }
}

void job::disturb(std::string const& a, std::string const& b, fault const& f) {
  if (a == b || dark_.contains(a) || dark_.contains(b)) return;
  if (f.what == strand) {
    touch(a), touch(b);
    return world::strand_connections(a, b);
  }
  touch(a, f.length), touch(b, f.length);
  world::link const there = world::get_link(a, b), back = world::get_link(b, a);
  world::link to = there, from = back;
  if (f.what == cut || f.what == isolate) to.cut = from.cut = true;
  if (f.what == one_way) to.cut = true;
  if (f.what == delay || f.what == reset)
    to.latency = from.latency = milliseconds(std::min<std::uint64_t>(f.number, 800));
  world::set_link(a, b, to);
  world::set_link(b, a, from);
  after(f.length, [this, a, b, f] {
    // Another fault may have ended this one's, or begun after it: what lasts longest counts, and all ends.
    world::link const usual{.latency = plan_.latency, .jitter = plan_.latency / 2};
    world::set_link(a, b, usual);
    world::set_link(b, a, usual);
    if (f.what == reset) world::reset_connections(a, b);
  });
}

void job::disturb_disk(fault const& f) {
  world::disk d = world::get_disk("storage");
  if (f.what == slow_disk) d.fsync = milliseconds(f.number);
  if (f.what == full_disk) d.capacity = 0;
  if (f.what == failing_disk) d.io_error = 1;
  world::set_disk("storage", d);
  slow_seen_ = true;
  ++applied_;
  if (f.what != slow_disk) disk_trouble_ = std::max(disk_trouble_, world::now() + f.length + 3s);
  after(f.length, [] { world::set_disk("storage", {}); });
}

void job::damage_journal(fault const& f) {
  std::string const path =
      std::string(directory) + (plan_.launched ? "/journal" : "/checkpoints/master.json");
  auto content = world::read_file("master", path);
  // Where there is none before it, a person is asked.
  bool const before = world::read_file("master", path + ".before") || (world::now() > 10s && !slow_seen_);
  if (content && !content->empty() && before) {
    if (f.number % 3 == 0)
      content->resize(content->size() * (f.number % 100) / 100);
    else
      (*content)[f.number % content->size()] ^= char(1u << f.number % 8);
    world::remove_file("master", path);  // the one before may be the same file
    world::write_file("master", path, *content);
    ++applied_;
  }
  touch("master");
  if (process* const p = at("master")) world::kill(p->pid, SIGKILL);
}

void job::scale(fault const& f) {
  if (!plan_.launched) return;  // by hand nobody stops who goes
  ++applied_;
  std::string const flag = f.what == workers ? "workers" : "servers";
  world::start({.name = "scale",
                .host = "launcher",
                .main = scale_main,
                .arguments = {"scale"},
                .environment = {{"SCALE_WHAT", flag},
                                {"SCALE_TO", std::to_string(f.number)},
                                {"WORLD_TLS", plan_.tls ? "1" : "0"},
                                {"SCALE_MASTER", fmt::format("tcp:{}:5000", world::address_of("master"))}}});
}

}  // namespace simulation
