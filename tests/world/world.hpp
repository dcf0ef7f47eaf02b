// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// A simulated operating system for whole systems of edl: processes, threads, time, network and disks of one
/// history lie in this one OS process, and exactly one thread runs at a time. The seed decides everything:
/// who runs next, how long a packet travels, what a random number is. Nothing of edl is changed or modelled:
/// the program defines the functions of libc that its code and its libraries call (`tests/world/libc/`).
///
/// All functions below are for the history's driver (`run`), for callbacks (`at`, `on_line`, `on_end`), and
/// not for other OS threads. Inside of the driver the standard library is virtual: std::chrono clocks tell
/// the history's time and std::this_thread::sleep_for lets it pass. A callback must not block.
namespace world {

using namespace std::chrono_literals;
using duration = std::chrono::nanoseconds;  ///< virtual
using pid = int;

// ---- The history ----

struct history_options {
  std::uint64_t seed = 1;
  duration limit =
      std::chrono::hours(24);  ///< of virtual time; a history that is not over by then has failed
  std::uint64_t most_events = 2'000'000'000;
  double preemption = 0.02;  ///< probability that a thread yields where it takes a lock, sends or receives
  std::string trace;         ///< file that gets a line for each event, to find where two runs differ
};

struct history_result {
  std::uint64_t hash = 0;  ///< of all events and all output: equal for equal seeds
  std::uint64_t events = 0, switches = 0;
  duration virtual_time{}, real_time{};
  duration cpu_time{};  ///< that the history took of a processor
  std::string failure;  ///< empty: the driver has returned. Deadlock, limit, `fail`
};

/// Runs the driver as the first thread of a new history, until it returns. Once per OS process.
history_result run(history_options const& options, std::function<void()> driver);

/// Ends the history at once as failed. From any thread of it.
[[noreturn]] void fail(std::string why);

duration now();                           ///< since the history began
std::uint64_t draw(std::uint64_t below);  ///< of the seed, from a stream for drivers only: [0, below)
double draw_fraction();                   ///< [0, 1)

/// Runs `what` when that time has come, between the threads' turns. It must not block.
void at(duration when, std::function<void()> what);

// ---- Hosts and processes ----

struct program {
  std::string name;                      ///< of the process in logs and traces
  std::string host;                      ///< empty: one of its own, of the same name. Made at its first use
  std::function<int(int, char**)> main;  ///< the real main function
  std::vector<std::string> arguments;    ///< the first is the program's name
  std::map<std::string, std::string> environment;
  /// A new host is a container on that one: 127.0.0.1 is there, and it has its files.
  std::string machine = {};
};

/// A program of a file's name: what executes it runs that function. Each program may execute itself.
void install(std::string const& path, std::function<int(int, char**)> main);

struct ending {
  int code = 0, signal = 0;  ///< as waitpid tells; signal != 0: it was killed
  duration when{};
};

pid start(program what);
bool alive(pid of);
std::optional<ending> ended(pid of);
void wait(pid of);                        ///< until it has ended. Blocks: not in callbacks
bool wait_for(pid of, duration timeout);  ///< whether it has ended. Blocks
std::vector<pid> processes();             ///< that live, in the order of their starts
std::string name_of(pid of);
std::string host_of(pid of);

void fail_forks(pid of, int count);  ///< its next ones give EAGAIN
/// The system_clock of its processes, and of those to come there, jumps.
void set_wall_clock(std::string const& host, duration ahead);
/// A poll of up to 10 ms takes that much longer: of a server that looks at idle connections so often.
void set_slack(pid of, duration slack);

/// As kill(2): SIGKILL, SIGTERM, SIGINT, …; SIGSTOP pauses all its threads (the host still acknowledges what
/// comes for it), SIGCONT lets them go on. Sockets of a killed process are closed as by its kernel: with FIN
/// or, where it had not read everything, RST.
void kill(pid of, int signal);

/// The machine is gone, as after a loss of power: its processes end, and nobody is told; what is sent to it
/// is lost, until `boot`. Then it refuses old connections by RST. Unforced contents of its own disk are lost.
void power_off(std::string const& host);
void boot(std::string const& host);

struct line {
  pid from;
  int fd;  ///< 1 or 2
  duration when;
  std::string_view text;  ///< without the newline
};
void on_line(std::function<void(line const&)> hears);
void on_end(std::function<void(pid, ending const&)> hears);

/// What a process has asked of the system.
struct call {
  pid by;
  std::string_view what;  ///< "send" and "connect" to another host, "fsync", "rename"
  std::string_view on;    ///< that host, or the file; of "rename" its new name
};
void on_call(std::function<void(call const&)> hears);

// ---- Network: hosts have names; packets of a connection stay in order, those of different ones need not
// ----

struct link {
  duration latency = 100us;   ///< one way, at least
  duration jitter = 100us;    ///< more, drawn for each packet; exponential
  double bandwidth = 1.25e9;  ///< bytes per second
  double loss = 0;            ///< probability that a packet is lost once, and comes by a retransmission
  bool cut = false;           ///< nothing passes; TCP sends again when it is healed, or gives up
};
link get_link(std::string const& from, std::string const& to);
void set_link(std::string const& from, std::string const& to, link const& one_way);
void set_default_link(link const& all);
void cut(std::string const& a, std::string const& b);   ///< both ways
void heal(std::string const& a, std::string const& b);  ///< both ways
void isolate(std::string const& host);                  ///< from all others
void rejoin(std::string const& host);
void reset_connections(std::string const& a, std::string const& b);  ///< RST on all that are open
/// Their packets are lost from now on, as by a gateway that has forgotten them: half-open connections.
void strand_connections(std::string const& a, std::string const& b);
/// What `a` answers on connections that `b` has made is acknowledged and lost, as by a relay gone wrong.
/// `count`: only so many packets of each connection; 0: all.
void swallow(std::string const& a, std::string const& b, std::uint64_t count = 0);
/// Connections that `a` has to `b` end with an error at `a`, and `late` afterwards at `b`.
void end_late(std::string const& a, std::string const& b, duration late);
std::string address_of(std::string const& host);                 ///< its IP address. DNS knows its name
void set_dns(std::string const& name, std::string const& host);  ///< another name; empty host: unknown
std::size_t connections();                                       ///< open ones between different hosts

// ---- Disks: a volume is a tree of files in memory. Every host has "/", of its own; others are mounted ----

struct disk {
  duration open = 20us, write = 10us, fsync = 2ms;  ///< how long these take
  double bandwidth = 1e9;                           ///< bytes per second
  std::uint64_t capacity = 1ull << 40;              ///< ENOSPC beyond
  double io_error = 0;                              ///< probability of EIO, of each call that reaches it
  bool lies = false;                                ///< fsync returns without forcing anything
  bool read_only = false;                           ///< EROFS
  bool blind = false;  ///< fcntl locks of one host are not seen by others, as on some network file systems
};
/// Volumes have names; a host's own is called as the host. Made at its first use.
disk get_disk(std::string const& volume);
void set_disk(std::string const& volume, disk const& how);
std::uint64_t disk_used(std::string const& volume);  ///< bytes
void mount(std::string const& host, std::string const& path, std::string const& volume);
void mount_everywhere(std::string const& path, std::string const& volume);
/// What was not forced is lost, or kept in part: each file has its forced image, any prefix of what was
/// written since, with a torn last block; each directory its forced entries, or some of the new ones.
void lose_unforced(std::string const& volume);

// Files, at once and without faults. Paths are those of the host.
std::optional<std::string> read_file(std::string const& host, std::string const& path);
void write_file(std::string const& host, std::string const& path, std::string_view content);
std::vector<std::string> list(std::string const& host, std::string const& path);
bool remove_file(std::string const& host, std::string const& path);

}  // namespace world
