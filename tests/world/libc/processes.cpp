// SPDX-License-Identifier: Apache-2.0
// Processes, their ends, signals, and facts of the machine.
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "world/kernel/process.hpp"
#include "world/libc/raw.hpp"
#include "world/libc/result.hpp"

using namespace world;

namespace world {

long simulated_call(long number, long const (&a)[6], bool& known) {
  known = true;
  switch (number) {
    case SYS_gettid:
      return 100'000 + self->number;
    case SYS_close_range:
      return 0;  // no descriptor but the standard ones is inherited
    case SYS_getrandom:
      return ::getentropy(reinterpret_cast<void*>(a[0]), std::size_t(a[1])) == 0 ? a[1] : -EIO;
    case SYS_pidfd_open: {
      process* const p = process_of(pid(a[0]));
      if (!p) return -ESRCH;
      auto const o = std::make_shared<process_handle>(*p);
      p->handles.push_back(o);
      return add_descriptor(o);
    }
    default:
      known = false;
      return 0;
  }
}

/// The registers that a function keeps for its caller, as fork was called.
struct saved_registers {
  std::uint64_t rbx, rbp, r12, r13, r14, r15, rsp;
};

/// A fork: its code runs on its parent's thread until it executes a program or ends; then fork returns again,
/// with the parent's frames as they were.
struct forked {
  saved_registers registers;
  std::string frames;
  std::uint64_t signal_mask;
};

namespace {
std::map<pid, forked>& forks() {
  static auto& all = *new std::map<pid, forked>;
  return all;
}
constexpr std::size_t most_frames = 16384;
}  // namespace

extern "C" pid begin_fork(saved_registers const* at) {
  static auto* const real = next<pid_t()>("fork");
  if (!self) return real();
  process& parent = *self->of;
  if (parent.failing_forks > 0) return --parent.failing_forks, errno = EAGAIN, -1;
  program const same{
      .name = parent.name, .host = parent.at->name, .main = parent.main, .arguments = parent.arguments};
  process& child = make_process(same, &parent);
  child.before_exec = true;
  child.group = parent.group;
  child.directory = parent.directory;
  child.actions = parent.actions;
  for (std::size_t i = 0; i < 3; ++i) {
    child.standard[i] = parent.standard[i];
    if (child.standard[i]) ++child.standard[i]->descriptors;
  }
  forked& f = forks()[child.number];
  f.registers = *at;
  f.signal_mask = self->signal_mask;
  auto const* const first = reinterpret_cast<char const*>(at->rsp);
  f.frames.assign(first, std::min(most_frames, std::size_t(self->stack_top - first)));
  leave(*self);
  self->of = &child;
  enter(*self);
  return 0;
}

[[noreturn]] void return_from_fork(process& child) {
  auto const it = forks().find(child.number);
  forked& f = it->second;
  leave(*self);
  self->of = child.parent;
  enter(*self);
  self->signal_mask = f.signal_mask;
  child.before_exec = false;
  saved_registers const r = f.registers;
  std::memcpy(reinterpret_cast<void*>(r.rsp), f.frames.data(), f.frames.size());
  asm volatile(
      "mov 0(%0), %%rbx\n mov 8(%0), %%rbp\n mov 16(%0), %%r12\n mov 24(%0), %%r13\n mov 32(%0), %%r14\n"
      "mov 40(%0), %%r15\n mov 48(%0), %%rsp\n ret"
      :
      : "r"(&r), "a"(long(child.number))
      : "memory");
  __builtin_unreachable();
}

[[noreturn]] static void end_self(int code, int signal) {
  process& p = *self->of;
  if (p.before_exec) {
    end_process(p, code, signal);
    return_from_fork(p);
  }
  leave_process(code, signal);
}

static void set_mask(int how, sigset_t const* set, sigset_t* before) {
  if (before) {
    sigemptyset(before);
    for (int s = 1; s <= 64; ++s)
      if (self->signal_mask & bit_of(s)) sigaddset(before, s);
  }
  if (!set) return;
  std::uint64_t const bits = bits_of(*set) & ~bit_of(SIGKILL) & ~bit_of(SIGSTOP);
  if (how == SIG_BLOCK) self->signal_mask |= bits;
  if (how == SIG_UNBLOCK) self->signal_mask &= ~bits;
  if (how == SIG_SETMASK) self->signal_mask = bits;
  process& p = *self->of;
  if (p.before_exec) return;
  deliver_pending(p);
  if (p.end) os->retire();
}

}  // namespace world

extern "C" {

__attribute__((naked)) pid_t fork() noexcept {
  asm("sub $72, %rsp\n mov %rbx, 0(%rsp)\n mov %rbp, 8(%rsp)\n mov %r12, 16(%rsp)\n mov %r13, 24(%rsp)\n"
      "mov %r14, 32(%rsp)\n mov %r15, 40(%rsp)\n lea 72(%rsp), %rax\n mov %rax, 48(%rsp)\n mov %rsp, %rdi\n"
      "call begin_fork\n add $72, %rsp\n ret");
}

int execve(char const* path, char* const* arguments, char* const* environment) noexcept {
  static auto* const real = next<int(char const*, char* const*, char* const*)>("execve");
  if (!self) return real(path, arguments, environment);
  process& p = *self->of;
  if (!p.before_exec) return int(result_of(-ENOSYS));
  auto const& main = program_at(path);
  if (!main && std::string_view(path) != "/proc/self/exe") return int(result_of(-ENOENT));
  if (main) p.main = main;
  p.arguments.clear();
  for (char* const* a = arguments; *a; ++a) p.arguments.emplace_back(*a);
  std::size_t n = 0;
  while (environment[n]) ++n;
  auto** const all = static_cast<char**>(std::malloc((n + 1) * sizeof(char*)));
  for (std::size_t i = 0; i < n; ++i) all[i] = ::strdup(environment[i]);
  all[n] = nullptr;
  ::environ = all;
  auto const variable = [&](std::string_view name) -> std::string {
    for (std::size_t i = 0; i < n; ++i)
      if (std::string_view const e = all[i]; e.starts_with(name) && e[name.size()] == '=')
        return all[i] + name.size() + 1;
    return {};
  };
  // What it is called, and which host it is on: of a pod its own.
  in_addr address{};
  if (std::string const ip = variable("MY_POD_IP"); ::inet_pton(AF_INET, ip.c_str(), &address) == 1) {
    p.name = variable("HOSTNAME");
    p.at = &pod_called(p.name, ntohl(address.s_addr), *p.parent->at);
  } else if (std::string const role = variable("EDL_ROLE"); !role.empty()) {
    std::string const id = variable(role == "ps" ? "PS_ID" : "WORKER_ID");
    p.name = id.empty() ? role : role + '-' + id;
  } else {
    p.name = p.arguments[0].substr(p.arguments[0].find_last_of('/') + 1);
  }
  os->note("exec", p.name);
  leave(*self);
  run_main(p);
  return_from_fork(p);
}

pid_t waitpid(pid_t of, int* status, int options) {
  static auto* const real = next<pid_t(pid_t, int*, int)>("waitpid");
  if (!self) return real(of, status, options);
  process& me = *self->of;
  for (;;) {
    bool any = false;
    for (auto const& p : all_processes()) {
      if (p->parent != &me || p->reaped || (of > 0 && p->number != of)) continue;
      any = true;
      if (!p->end) continue;
      p->reaped = true;
      if (status) *status = p->end->signal ? p->end->signal : p->end->code << 8;
      return p->number;
    }
    if (!any) return int(result_of(-ECHILD));
    if (options & WNOHANG) return 0;
    os->block(me.child_waiters, never, "a child's end");
  }
}

int posix_spawnp(pid_t* into, char const* file, posix_spawn_file_actions_t const* actions,
                 posix_spawnattr_t const* how, char* const* arguments, char* const* environment) {
  static auto* const real = next<decltype(posix_spawnp)>("posix_spawnp");
  return self ? ENOENT : real(into, file, actions, how, arguments, environment);
}

// ---- Ends ----

void exit(int code) noexcept {
  static auto* const real = next<void(int)>("exit");
  if (self) end_self(code & 0xff, 0);
  real(code);
  for (;;) {
  }
}
void _exit(int code) {
  if (self) end_self(code & 0xff, 0);
  for (;;) raw::call(SYS_exit_group, code);
}
void _Exit(int code) noexcept { _exit(code); }
void quick_exit(int code) noexcept { _exit(code); }

void abort() noexcept {
  static auto* const real = next<void()>("abort");
  if (self) end_self(0, SIGABRT);
  real();
  for (;;) {
  }
}

void __assert_fail(char const* what, char const* file, unsigned line, char const* function) noexcept {
  raw::say(std::string(file) + ':' + std::to_string(line) + ": " + function + ": " + what + '\n');
  abort();
}

// ---- Signals ----

int kill(pid_t to, int number) noexcept {
  static auto* const real = next<int(pid_t, int)>("kill");
  if (!self) return real(to, number);
  if (to < 0) {
    bool any = false;
    for (auto const& p : all_processes())
      if (p->group == -to && !p->end) any = true, send_signal(*p, number, self->of->number);
    if (self->of->end) os->retire();
    return any ? 0 : int(result_of(-ESRCH));
  }
  process* const p = process_of(to);
  if (!p || (p->end && p->reaped)) return int(result_of(-ESRCH));
  if (number == 0) return 0;
  send_signal(*p, number, self->of->number);
  if (self->of->end) os->retire();
  return 0;
}

int raise(int number) noexcept {
  static auto* const real = next<int(int)>("raise");
  return self ? ::kill(self->of->number, number) : real(number);
}

int sigaction(int number, struct sigaction const* to, struct sigaction* before) noexcept {
  static auto* const real = next<int(int, struct sigaction const*, struct sigaction*)>("sigaction");
  if (!self) return real(number, to, before);
  if (before) {
    auto const it = self->of->actions.find(number);
    *before = {};
    if (it != self->of->actions.end()) *before = it->second;
  }
  if (to) self->of->actions[number] = *to;
  return 0;
}

sighandler_t signal(int number, sighandler_t to) noexcept {
  static auto* const real = next<sighandler_t(int, sighandler_t)>("signal");
  if (!self) return real(number, to);
  struct sigaction now{}, before{};
  now.sa_handler = to;
  sigaction(number, &now, &before);
  return before.sa_handler;
}

int pthread_sigmask(int how, sigset_t const* set, sigset_t* before) noexcept {
  static auto* const real = next<int(int, sigset_t const*, sigset_t*)>("pthread_sigmask");
  if (!self) return real(how, set, before);
  set_mask(how, set, before);
  return 0;
}
int sigprocmask(int how, sigset_t const* set, sigset_t* before) noexcept {
  static auto* const real = next<int(int, sigset_t const*, sigset_t*)>("sigprocmask");
  if (!self) return real(how, set, before);
  set_mask(how, set, before);
  return 0;
}

// ---- Facts ----

pid_t getpid() noexcept {
  static auto* const real = next<pid_t()>("getpid");
  return self ? self->of->number : real();
}
int setpgid(pid_t of, pid_t group) noexcept {
  static auto* const real = next<int(pid_t, pid_t)>("setpgid");
  if (!self) return real(of, group);
  process* const p = of == 0 ? self->of : process_of(of);
  if (!p) return int(result_of(-ESRCH));
  p->group = group == 0 ? p->number : group;
  return 0;
}
pid_t setsid() noexcept {
  static auto* const real = next<pid_t()>("setsid");
  if (!self) return real();
  return self->of->group = self->of->number;
}
pid_t getppid() noexcept {
  static auto* const real = next<pid_t()>("getppid");
  if (!self) return real();
  return self->of->parent ? self->of->parent->number : 0;
}
pid_t gettid() noexcept {
  static auto* const real = next<pid_t()>("gettid");
  return self ? pid_t(100'000 + self->number) : real();
}
uid_t getuid() noexcept { return self ? 1000 : uid_t(raw::call(SYS_getuid)); }
uid_t geteuid() noexcept { return self ? 1000 : uid_t(raw::call(SYS_geteuid)); }
gid_t getgid() noexcept { return self ? 1000 : gid_t(raw::call(SYS_getgid)); }
gid_t getegid() noexcept { return self ? 1000 : gid_t(raw::call(SYS_getegid)); }

int prctl(int what, ...) noexcept {
  va_list given;
  va_start(given, what);
  long a[4];
  for (long& one : a) one = va_arg(given, long);
  va_end(given);
  if (!self) return int(result_of(raw::call(SYS_prctl, what, a[0], a[1], a[2], a[3])));
  if (what == PR_SET_PDEATHSIG) self->of->death_signal = int(a[0]);
  return 0;
}

int getrlimit(__rlimit_resource_t what, rlimit* into) noexcept {
  static auto* const real = next<int(__rlimit_resource_t, rlimit*)>("getrlimit");
  if (!self) return real(what, into);
  *into = what == RLIMIT_NOFILE ? rlimit{4096, 4096} : rlimit{RLIM_INFINITY, RLIM_INFINITY};
  return 0;
}
int setrlimit(__rlimit_resource_t what, rlimit const* to) noexcept {
  static auto* const real = next<int(__rlimit_resource_t, rlimit const*)>("setrlimit");
  return self ? 0 : real(what, to);
}
int getrusage(__rusage_who_t who, rusage* into) noexcept {
  static auto* const real = next<int(__rusage_who_t, rusage*)>("getrusage");
  if (!self) return real(who, into);
  *into = {};
  return 0;
}
int setpriority(__priority_which_t which, id_t who, int value) noexcept {
  static auto* const real = next<int(__priority_which_t, id_t, int)>("setpriority");
  return self ? 0 : real(which, who, value);
}

long sysconf(int what) noexcept {
  static auto* const real = next<long(int)>("sysconf");
  if (self && (what == _SC_NPROCESSORS_ONLN || what == _SC_NPROCESSORS_CONF)) return 1;
  if (self && (what == _SC_PHYS_PAGES || what == _SC_AVPHYS_PAGES)) return 4l << 20;
  return real(what);
}

}  // extern "C"
