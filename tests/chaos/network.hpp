// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace chaos {

/// Places on one wire, each a network namespace, and a wire that can be cut between any of them and the rest.
/// Needs root and `ip`.
class network {
 public:
  /// Moves this process into namespaces of its own, where all of it ends with the process. Throws
  /// std::runtime_error where that is not permitted.
  explicit network(int places) : places_(places) {
    static bool const alone = [] {
      return ::unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 &&
             ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
             (::mkdir("/run/netns", 0755) == 0 || errno == EEXIST) &&
             ::mount("none", "/run/netns", "tmpfs", 0, nullptr) == 0;
    }();
    if (!alone) throw std::runtime_error("network namespaces are not permitted here");
    run("link set lo up");
    run("link add wire type bridge");
    run("addr add " + outside() + "/24 dev wire");
    run("link set wire up");
    for (int i = 0; i < places; ++i) {
      run("netns add " + space(i));
      run("link add " + plug(i) + " type veth peer name inside netns " + space(i));
      run("link set " + plug(i) + " master wire up");
      run("-n " + space(i) + " addr add " + address(i) + "/24 dev inside");
      run("-n " + space(i) + " link set inside up");
      run("-n " + space(i) + " link set lo up");
    }
  }
  network(network const&) = delete;
  ~network() {
    // The wires first: a namespace takes its own along later, and their names are wanted again.
    for (int i = 0; i < places_; ++i) quietly("link del " + plug(i)), quietly("netns del " + space(i));
    quietly("link del wire");
  }

  std::string outside() const { return "10.77.0.1"; }
  std::string address(int place) const { return "10.77.0." + std::to_string(place + 2); }

  /// What is written before a command that is to run there.
  std::vector<std::string> inside(int place) const { return {program(), "netns", "exec", space(place)}; }

  /// From now on nothing comes through. `dark`: the place's own side sees it, too, as with a cable that is
  /// drawn.
  void cut(int place, bool dark) { run("link set " + plug(place) + (dark ? " down" : " nomaster")); }
  void mend(int place) { run("link set " + plug(place) + " master wire up"); }

 private:
  static std::string program() {
    for (char const* path : {"/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"})
      if (std::filesystem::exists(path)) return path;
    throw std::runtime_error("there is no ip, which makes network namespaces");
  }
  static bool quietly(std::string const& what) {
    return std::system((program() + " " + what + " 2>/dev/null").c_str()) == 0;
  }
  static void run(std::string const& what) {
    if (!quietly(what)) throw std::runtime_error("ip " + what + " is not permitted, or fails");
  }
  static std::string space(int i) { return "place" + std::to_string(i); }
  static std::string plug(int i) { return "plug" + std::to_string(i); }

  int places_;
};

}  // namespace chaos
