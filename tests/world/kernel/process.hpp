// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "world/kernel/kernel.hpp"
#include "world/kernel/object.hpp"

namespace world {

struct socket;
struct volume;

struct host {
  std::string name;
  std::uint32_t address = 0;  ///< IPv4, in the order of this machine
  bool up = true;
  std::map<std::uint16_t, socket*> ports;  ///< that listen
  std::map<std::string, socket*> local;    ///< Unix sockets that listen
  std::uint16_t last_port = 32768;
  std::int64_t clock_offset = 0;  ///< its system_clock is that much ahead
  host* outside = nullptr;        ///< of a pod: the machine that it is on, where 127.0.0.1 is
  std::vector<std::pair<std::string, volume*>> mounts;  ///< the longest path first
};

struct process {
  pid number = 0;
  std::string name;
  host* at = nullptr;
  process* parent = nullptr;
  std::function<int(int, char**)> main;
  std::vector<std::string> arguments;
  char** environment = nullptr;
  std::vector<thread*> threads;
  std::array<std::shared_ptr<object>, 3> standard;
  std::vector<std::shared_ptr<object>> descriptors;  ///< from first_descriptor on
  pid group = 0;
  std::int64_t slack = 0;
  int failing_forks = 0;  ///< the next ones fail
  std::array<std::string, 3> unfinished_line;
  bool stopped = false;
  std::vector<thread*> waiting_to_go_on;
  std::optional<ending> end;
  bool reaped = false;
  bool before_exec = false;                    ///< a fork whose code runs on its parent's thread
  wait_queue waiters;                          ///< for its end
  std::vector<std::weak_ptr<object>> handles;  ///< pidfds
  wait_queue child_waiters;                    ///< waitpid of any
  std::uint64_t pending = 0;
  std::map<int, int> pending_from;
  std::map<int, struct sigaction> actions;
  std::vector<std::weak_ptr<object>> signal_handles;
  int death_signal = 0;
  std::string directory = "/";
};

host& host_called(std::string const& name);
host* host_at(std::uint32_t address);
/// The pod of that name, with that address, on that machine.
host& pod_called(std::string const& name, std::uint32_t address, host& on);
process* process_of(pid number);
std::vector<std::unique_ptr<process>>& all_processes();

process& make_process(program const& what, process* parent);
void run_main(process& p);  ///< starts its first thread
/// The main function of a program that is executed; empty: there is none.
std::function<int(int, char**)> const& program_at(std::string const& path);
/// What a write to a standard descriptor says, line by line.
void hear(process& p, int fd, std::string_view bytes);
/// Ends a process: its threads, descriptors, and children that asked for it. Returns, but not to a thread of
/// it.
void end_process(process& p, int code, int signal);
[[noreturn]] void leave_process(int code, int signal);
void send_signal(process& to, int number, pid from);
/// Delivers what was held back and is not any more.
void deliver_pending(process& to);

// For the scheduler: what a thread sees of its process as a global.
void enter(thread& t);
void leave(thread& t);
[[noreturn]] void end_history();

/// One of the standard descriptors: its lines are the history's.
struct console final : object {
  explicit console(int which) : fd(which) {}
  long write(std::span<iovec const>, int) override;
  long read(std::span<iovec const>, int) override { return 0; }
  char const* kind() const override { return "console"; }
  int fd;
};

struct signal_handle final : object {
  signal_handle(process& p, std::uint64_t s) : of(p), set(s) {}
  long read(std::span<iovec const>, int) override;
  short ready() const override { return of.pending & set ? POLLIN : 0; }
  char const* kind() const override { return "signalfd"; }
  process& of;
  std::uint64_t set;
};

struct process_handle final : object {
  explicit process_handle(process& p) : of(p) {}
  short ready() const override { return of.end ? POLLIN : 0; }
  char const* kind() const override { return "pidfd"; }
  process& of;
};

inline std::uint64_t bit_of(int signal) { return std::uint64_t(1) << (signal - 1); }
std::uint64_t bits_of(sigset_t const& set);

}  // namespace world
