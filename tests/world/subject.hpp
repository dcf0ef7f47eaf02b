// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "world/fault.hpp"
#include "world/plan.hpp"
#include "world/timeline.hpp"
#include "world/world.hpp"

namespace simulation {

/// A process of the job.
struct process {
  world::pid pid = 0;
  std::uint64_t number = 0;       ///< of its start
  std::string role, name, place;  ///< "worker", "worker-5", "worker-1"
  std::uint32_t id = 0;
  std::uint64_t order = 0;  ///< by which a launcher started it
  world::duration started{};
  std::optional<world::ending> ended;
  bool hit = false;  ///< something was done to it, or to its network: whatever becomes of it is no wonder
  bool given_up = false;            ///< by the master
  bool replaced = false;            ///< while it lived
  std::uint64_t joined = 0;         ///< the number of the master that it has joined last
  std::uint64_t configured_by = 0;  ///< of a server: the master that gave it its ranges last; 0: none
  world::duration told_to_stop{};   ///< by a fault, when
  int hits = 0;                     ///< faults that met it
  bool wanted = true;               ///< nobody has told it to stop
  bool noticed = false;             ///< its machine is about to go: it may leave by itself
  std::string last;                 ///< of its lines
};

/// A job in the world: its processes, and who starts them again. What starts them is a launcher, which the
/// master orders about, or an operator, who starts what has ended, if it was not for the end of the job.
class job {
 public:
  job(plan const& p, timeline& lines);

  void start();
  void meet(fault const& f);  ///< at its time, or at its moment

  bool over() const { return over_; }                      ///< the master has left with an exit code
  std::string const& failure() const { return failure_; }  ///< its end was none that a job may have
  bool anybody() const;                                    ///< some process of it lives
  std::vector<std::string> living() const;                 ///< names, of those whom the master knows
  std::vector<std::string> const& findings() const { return findings_; }
  world::duration last_step() const { return last_step_; }
  std::uint64_t steps() const { return steps_; }
  std::size_t applied() const { return applied_; }  ///< faults that met somebody
  /// What must not be while it runs; asked now and then.
  void look();
  /// The clear error by which the job has ended, as it may where its storage fails before its first step, or
  /// for too long at its end; otherwise empty.
  std::string const& refused() const { return refused_; }
  std::set<std::uint64_t> const& evaluated() const { return evaluated_; }  ///< versions
  void end();  ///< the command has ended: so do all

  // Of the launcher, on any thread of the history.
  void order_start(std::string const& role, std::uint32_t id, std::map<std::string, std::string> variables,
                   std::uint64_t number);
  void order_stop(std::string const& role, std::uint32_t id, std::chrono::milliseconds grace);
  struct told_ending {
    std::string role;
    std::uint32_t id;
    int code, signal;
    bool stop_requested;
    std::uint64_t order;
  };
  std::vector<told_ending> const& endings() const { return endings_; }
  std::vector<std::pair<std::string, std::uint32_t>> running() const;

  static constexpr char const *directory = "/job", *notice_file = "/notice";
  std::vector<std::string> command() const;

 private:
  struct order {
    std::string role;
    std::uint32_t id;
    std::map<std::string, std::string> variables;
    std::uint64_t number;
  };

  process* find(world::pid of);
  process* master();                      ///< the newest, if it lives
  process* at(std::string const& place);  ///< that lives there
  process* living_of(std::string const& role, std::uint32_t id);
  std::string free_place(std::string const& role, std::uint32_t id) const;
  void launch(std::string const& role, std::uint32_t id, std::map<std::string, std::string> variables,
              std::uint64_t order = 0);
  void launch_master();
  void come(std::string const& role, std::uint32_t id, std::chrono::milliseconds pause);
  void bring_others();
  std::size_t living_or_coming(std::string const& role) const;
  void pump();
  void after(world::duration pause, std::function<void()> what);
  void on_end(world::pid of, world::ending const& how);
  void on_line(world::line const& l);
  void master_ended(process const& who);
  void member_ended(process const& who);
  void replace_by_hand(process& who);
  void judge_line(process& who, log_line const& l);
  void find_fault(std::string what);
  void look_at_history(std::uint64_t from);

  /// So many minibatches the servers may have, or lack, beyond those that workers were told of.
  std::uint64_t on_the_way() const {
    return 2 * std::uint64_t(most_workers_) * std::uint64_t(plan_.outer_steps);
  }

  void apply(fault const& f);  ///< now; what it changes is as before after its length
  void happens(process const& by, std::string_view call, std::string_view on);
  void on_call(world::call const& c);
  void expect(fault const& f);
  void touch(std::string const& place, world::duration length = {});
  std::vector<process*> members_but(std::string const& place);
  void disturb(std::string const& a, std::string const& b, fault const& f);
  void relink(std::string const& a, std::string const& b);
  void part(fault const& f);
  void disturb_disk(fault const& f);
  void damage_journal(fault const& f);
  void scale(fault const& f);
  void look_at_size();
  std::vector<std::string> places() const;

  plan plan_;
  timeline& lines_;
  draws draws_;
  std::vector<process> all_;
  std::vector<order> orders_;
  std::set<std::pair<std::string, std::uint32_t>> coming_;  // by hand
  std::vector<told_ending> endings_;
  struct aimed {
    fault what;
    std::uint64_t seen = 0;
  };
  std::vector<aimed> aimed_;
  struct disturbance {
    std::string from, to;
    bool cut;
    std::chrono::milliseconds latency;
  };
  std::list<disturbance> disturbances_;                                    // of links, that last
  std::map<std::string, world::duration> troubled_;                        // places, until when
  std::map<std::pair<std::string, std::string>, world::duration> losses_;  // of messages, when: the last ones
  std::map<std::string, world::duration> absent_;        // places of who does nothing, until when
  world::duration secluded_{};                           // until then the master is to blame nobody
  world::duration disk_trouble_{};                       // until then, and a moment longer
  world::duration disk_bad_since_{}, disk_bad_until_{};  // it was slow, or failed
  std::set<std::string> dark_;                           // places without power
  std::string master_at_ = "master";                     // the newest
  bool parts_ = false;                                   // there may be two masters: they have a name
  std::uint64_t lost_master_ = 0;                        // with its half, whose last replies may still arrive
  bool notices_ = false;                                 // machines may be taken away with notice
  std::map<std::uint64_t, world::duration> hangs_;
  std::map<std::uint64_t, int> passes_;  // of processes, by their numbers
  std::vector<std::string> findings_;
  std::string failure_, refused_;
  std::uint64_t started_ = 0, steps_ = 0, acknowledged_ = 0, valid_ = 0;
  std::uint64_t written_ = 0;  // version of the newest checkpoint that the master has told of
  std::uint32_t next_worker_ = 0;
  std::set<std::uint64_t> evaluated_;
  std::uint32_t wanted_workers_ = 0, wanted_servers_ = 0, most_workers_ = 0;
  std::map<world::pid, fault::kind> scales_;  // who asks for another size
  std::set<fault::kind> unsure_;              // sizes that may or may not have been taken
  world::duration last_step_{}, last_pass_{}, expected_{}, changed_{};
  std::size_t applied_ = 0;
  bool over_ = false, ending_ = false, trained_ = false;
  bool exported_ = false;    // the model, which is the last thing that a job does with its members
  bool leaving_ = false;     // a worker has heard of the end
  bool void_ = false;        // steps are told that the job has gone back behind
  bool slow_seen_ = false;   // the disk was slow
  bool less_known_ = false;  // a master was lost that could not write its journal
};

/// The job of this history, for the launcher's process and the model.
job* the_job();

/// `main` of the process that starts others for the master, and of one that asks it for another size.
int launcher_main(int argc, char** argv);
int scale_main(int argc, char** argv);

}  // namespace simulation
