// SPDX-License-Identifier: Apache-2.0
#include "world/kernel/process.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "world/kernel/disk.hpp"
#include "world/kernel/network.hpp"
#include "world/libc/raw.hpp"

namespace world {

namespace {

std::uint32_t history_over = 0;  // futex of who runs the history

char** copy_environment(std::map<std::string, std::string> const& from) {
  auto** const all = static_cast<char**>(std::malloc((from.size() + 1) * sizeof(char*)));
  std::size_t i = 0;
  for (auto const& [name, value] : from) all[i++] = ::strdup((name + "=" + value).c_str());
  all[i] = nullptr;
  return all;
}

void* main_of(void* given) {
  process& p = *static_cast<process*>(given);
  std::vector<char*> arguments;
  for (std::string& a : p.arguments) arguments.push_back(a.data());
  arguments.push_back(nullptr);
  int const code = p.main(int(p.arguments.size()), arguments.data());
  leave_process(code & 0xff, 0);
}

}  // namespace

// ---- Hosts ----

static std::vector<std::unique_ptr<host>>& hosts() {
  static auto& all = *new std::vector<std::unique_ptr<host>>;
  return all;
}

host& host_called(std::string const& name) {
  for (auto const& h : hosts())
    if (h->name == name) return *h;
  host& h = *hosts().emplace_back(std::make_unique<host>());
  h.name = name;
  h.address = 0x0a000000u + std::uint32_t(hosts().size());
  h.mounts.emplace_back("/", &volume_called(name));
  add_common_mounts(h);
  return h;
}

host& pod_called(std::string const& name, std::uint32_t address, host& on) {
  if (host* const known = find_host(name)) return *known;
  host& h = host_called(name);
  if (address) h.address = address;
  h.outside = &on;
  h.mounts = on.mounts;
  return h;
}

host* host_at(std::uint32_t address) {
  if (address >> 24 == 127) {
    for (auto const& h : hosts())
      if (h->address == address) return h.get();
    return nullptr;
  }
  std::uint32_t const i = address - 0x0a000001u;
  return i < hosts().size() ? hosts()[i].get() : nullptr;
}

// ---- Processes ----

std::vector<std::unique_ptr<process>>& all_processes() {
  static auto& all = *new std::vector<std::unique_ptr<process>>;
  return all;
}

process* process_of(pid number) {
  auto const& all = all_processes();
  return number >= 1 && std::size_t(number) <= all.size() ? all[std::size_t(number) - 1].get() : nullptr;
}

static auto& programs() {
  static auto& all = *new std::map<std::string, std::function<int(int, char**)>>;
  return all;
}

void install(std::string const& path, std::function<int(int, char**)> main) {
  programs()[path] = std::move(main);
}

std::function<int(int, char**)> const& program_at(std::string const& path) {
  static auto& none = *new std::function<int(int, char**)>;
  auto const it = programs().find(path);
  return it == programs().end() ? none : it->second;
}

process& make_process(program const& what, process* parent) {
  auto& all = all_processes();
  process& p = *all.emplace_back(std::make_unique<process>());
  p.number = pid(all.size());
  p.name = what.name;
  std::string const& at = what.host.empty() ? what.name : what.host;
  p.at = what.machine.empty() ? &host_called(at) : &pod_called(at, 0, host_called(what.machine));
  p.parent = parent;
  p.group = p.number;
  p.main = what.main;
  p.arguments = what.arguments;
  if (p.arguments.empty()) p.arguments.push_back(what.name);
  p.environment = copy_environment(what.environment);
  for (int fd = 0; fd < 3; ++fd) {
    p.standard[std::size_t(fd)] = std::make_shared<console>(fd);
    p.standard[std::size_t(fd)]->descriptors = 1;
  }
  os->note("process", p.name);
  return p;
}

void run_main(process& p) {
  thread& t = os->make_thread(p);
  t.entry = main_of;
  t.argument = &p;
  os->start_os_thread(t, nullptr);
}

void end_process(process& p, int code, int signal) {
  if (p.end) return;
  for (std::size_t fd = 1; fd < 3; ++fd)
    if (!p.unfinished_line[fd].empty()) {
      std::string const text = std::exchange(p.unfinished_line[fd], {});
      for (auto const& hears : os->line_listeners) hears({p.number, int(fd), duration(os->now), text});
    }
  p.end = ending{code, signal, duration(os->now)};
  os->note("end", std::uint64_t(p.number), std::uint64_t(code) << 8 | std::uint64_t(signal));
  for (thread* t : p.threads)
    if (t != self || t->is != thread::state::running) os->drop(*t);
  p.waiting_to_go_on.clear();
  close_all_of(p);
  for (auto const& other : all_processes()) {
    if (other->parent != &p) continue;
    other->parent = process_of(1);
    if (other->death_signal && !other->end) send_signal(*other, other->death_signal, 0);
  }
  p.waiters.wake_all();
  for (auto const& weak : p.handles)
    if (auto const o = weak.lock()) o->changed();
  if (p.parent) {
    p.parent->child_waiters.wake_all();
    send_signal(*p.parent, SIGCHLD, p.number);
  }
  for (auto const& hears : os->end_listeners) hears(p.number, *p.end);
}

void leave_process(int code, int signal) {
  process& p = *self->of;
  end_process(p, code, signal);
  if (p.number == 1) os->finish(code == 0 && signal == 0 ? "" : "the driver has ended");
  os->retire();
}

// ---- Signals ----

std::uint64_t bits_of(sigset_t const& set) {
  std::uint64_t bits = 0;
  for (int s = 1; s <= 64; ++s)
    if (sigismember(&set, s) == 1) bits |= bit_of(s);
  return bits;
}

void deliver_pending(process& to) {
  std::uint64_t everywhere = ~std::uint64_t(0);
  for (thread const* t : to.threads)
    if (t->is != thread::state::gone) everywhere &= t->signal_mask;
  for (int s = 1; s <= 64; ++s)
    if ((to.pending & ~everywhere & bit_of(s)) != 0) {
      to.pending &= ~bit_of(s);
      send_signal(to, s, to.pending_from[s]);
    }
}

void send_signal(process& to, int number, pid from) {
  if (to.end || number < 1 || number > 64) return;
  if (number != SIGCHLD) os->note("signal", std::uint64_t(to.number), std::uint64_t(number));
  if (number == SIGKILL) return end_process(to, 0, SIGKILL);
  if (number == SIGSTOP) {
    to.stopped = true;
    for (thread* t : to.threads)
      if (std::erase(os->ready, t) > 0) to.waiting_to_go_on.push_back(t);
    return;
  }
  if (number == SIGCONT) {
    to.stopped = false;
    for (thread* t : std::exchange(to.waiting_to_go_on, {})) os->ready.push_back(t);
    return;
  }
  auto const action = to.actions.find(number);
  bool const ignored = action != to.actions.end() && action->second.sa_handler == SIG_IGN;
  if (ignored && to.before_exec) return;
  std::uint64_t everywhere = ~std::uint64_t(0);
  for (thread const* t : to.threads)
    if (t->is != thread::state::gone) everywhere &= t->signal_mask;
  if (everywhere & bit_of(number)) {
    to.pending |= bit_of(number);
    to.pending_from[number] = from;
    for (auto const& weak : to.signal_handles)
      if (auto const o = weak.lock()) o->changed();
    return;
  }
  bool const harmless = number == SIGCHLD || number == SIGURG || number == SIGWINCH;
  if (ignored) return;
  if (action != to.actions.end() && action->second.sa_handler != SIG_DFL) {
    // On a thread of its own: none of a simulated process is interrupted.
    thread& t = os->make_thread(to);
    t.entry = [](void* what) -> void* {
      auto const one =
          std::unique_ptr<std::pair<void (*)(int), int>>(static_cast<std::pair<void (*)(int), int>*>(what));
      one->first(one->second);
      return nullptr;
    };
    t.detached = true;
    t.argument = new std::pair<void (*)(int), int>(action->second.sa_handler, number);
    os->start_os_thread(t, nullptr);
    return;
  }
  if (!harmless) end_process(to, 0, number);
}

long signal_handle::read(std::span<iovec const> into, int) {
  std::uint64_t const there = of.pending & set;
  if (!there) return -EAGAIN;
  int const number = __builtin_ctzll(there) + 1;
  of.pending &= ~bit_of(number);
  signalfd_siginfo info{};
  info.ssi_signo = std::uint32_t(number);
  info.ssi_pid = std::uint32_t(of.pending_from[number]);
  return long(scatter({reinterpret_cast<char const*>(&info), sizeof info}, into));
}

// ---- Output ----

long console::write(std::span<iovec const> from, int) {
  std::string const bytes = gather(from, total_of(from));
  hear(*self->of, fd, bytes);
  return long(bytes.size());
}

void hear(process& p, int fd, std::string_view bytes) {
  std::string& rest = p.unfinished_line[std::size_t(fd)];
  rest += bytes;
  for (std::size_t at; (at = rest.find('\n')) != std::string::npos;) {
    std::string const text = rest.substr(0, at);
    rest.erase(0, at + 1);
    os->note(p.name.c_str(), text);
    for (auto const& hears : os->line_listeners) hears({p.number, fd, duration(os->now), text});
  }
}

// ---- Threads and their process' globals ----

void enter(thread& t) {
  if (t.of) ::environ = t.of->environment;
}

void leave(thread& t) {
  if (t.of) t.of->environment = ::environ;
}

void end_history() {
  post(history_over);
  for (std::uint32_t nobody = 0;;) await(nobody);
}

void await_history() { await(history_over); }

}  // namespace world
