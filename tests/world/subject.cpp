// SPDX-License-Identifier: Apache-2.0
#include "world/subject.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "world/counting.hpp"

namespace simulation {
namespace {

using namespace std::chrono_literals;

job* current = nullptr;

constexpr char const *token = "0123456789abcdef0123456789abcdef",
                     *launcher_token = "fedcba9876543210fedcba9876543210";
constexpr int master_port = 5000, launcher_port = 5001;

constexpr char const* master_name = "masters.world";

bool is_error(std::string const& level) { return level == "ERROR" || level == "CRITICAL"; }

}  // namespace

job* the_job() { return current; }

job::job(plan const& p, timeline& lines) : plan_(p), lines_(lines), draws_(p.seed, 3) {
  current = this;
  next_worker_ = wanted_workers_ = most_workers_ = std::uint32_t(p.workers);
  wanted_servers_ = std::uint32_t(p.servers);
  expected_ = 60s;
  counting::in_pass = [this](int rows) {
    std::this_thread::sleep_for(plan_.record * rows);
    last_pass_ = world::now();
    char const* const number = std::getenv("WORLD_NUMBER");
    if (!number) return;
    std::uint64_t const of = std::strtoull(number, nullptr, 10);
    // The first may take long. Who follows others makes one before those that count.
    if (++passes_[of] <= 2) return;
    for (auto it = hangs_.find(of); it != hangs_.end() && world::now() < it->second;)
      std::this_thread::sleep_for(100ms);
  };
  world::on_end([this](world::pid of, world::ending const& how) { on_end(of, how); });
  world::on_line([this](world::line const& l) { on_line(l); });
  world::on_call([this](world::call const& c) { on_call(c); });
}

std::vector<std::string> job::command() const {
  std::string const dir = directory;
  std::vector<std::string> line{"counting",
                                "train",
                                "--training_data=" + dir + "/data.counted",
                                "--minibatch_size=4",
                                "--num_minibatches_per_task=4",
                                fmt::format("--num_epochs={}", plan_.epochs),
                                fmt::format("--seed={}", 1 + plan_.seed % 1000),
                                fmt::format("--num_workers={}", plan_.workers),
                                fmt::format("--checkpoint_steps={}", plan_.checkpoint_steps),
                                "--checkpoint_dir=" + dir + "/checkpoints",
                                "--output=" + dir + "/model",
                                "--num_threads=1",
                                "--log_level=DEBUG",
                                "--log_loss_steps=1",
                                "--device=cpu",
                                "--kernels=fixed",
                                fmt::format("--transport_security={}", plan_.tls ? "tls" : "none")};
  auto const add = [&](std::string flag) { line.push_back(std::move(flag)); };
  if (plan_.has_servers()) {
    add(fmt::format("--num_ps_pods={}", plan_.servers));
    add("--ps_ranges=4");
    add(fmt::format("--ps_replicas={}", plan_.copies));
    if (plan_.how == strategy::asynchronous) add("--use_async");
    if (plan_.outer_steps > 1) add(fmt::format("--outer_steps={}", plan_.outer_steps));
    if (plan_.how == strategy::synchronous) add(fmt::format("--grads_to_wait={}", plan_.grads_to_wait));
  } else {
    add("--distribution_strategy=AllreduceStrategy");
    if (plan_.how == strategy::fixed) add("--fixed_global_batch");
  }
  if (notices_) add(fmt::format("--preemption_notice=file:{}", notice_file));
  if (plan_.kept > 0) add(fmt::format("--keep_checkpoint_max={}", plan_.kept));
  if (plan_.evaluation_steps > 0) {
    add("--validation_data=" + dir + "/data.counted");
    add(fmt::format("--evaluation_steps={}", plan_.evaluation_steps));
    if (plan_.judged) add("--save_best=loss");
  }
  return line;
}

// ---- Processes ----

process* job::find(world::pid of) {
  auto const it = std::ranges::find(all_, of, &process::pid);
  return it == all_.end() ? nullptr : &*it;
}

process* job::master() { return at(master_at_); }

process* job::at(std::string const& place) {
  for (process& p : all_)
    if (p.place == place && !p.ended) return &p;
  return nullptr;
}

process* job::living_of(std::string const& role, std::uint32_t id) {
  for (process& p : all_)
    if (p.role == role && p.id == id && !p.ended) return &p;
  return nullptr;
}

std::string job::free_place(std::string const& role, std::uint32_t id) const {
  bool const worker = role == "worker";
  for (std::uint32_t i = worker ? 0 : id;; i += worker ? 1 : 4) {
    std::string const place = fmt::format("{}-{}", worker ? role : "server", i);
    if (std::ranges::none_of(all_, [&](process const& p) { return p.place == place && !p.ended; }))
      return place;
  }
}

bool job::anybody() const { return !living().empty(); }

std::vector<std::string> job::living() const {
  std::vector<std::string> names;
  std::uint64_t last = 0;
  for (process const& p : all_)
    if (p.role == "master") last = p.number;
  // Who has not joined the last master hears of the end from nobody, and who hangs hears nothing.
  for (process const& p : all_)
    if (!p.ended && (p.role == "master" || p.joined == last) && !p.given_up && !hangs_.contains(p.number))
      names.push_back(p.name);
  return names;
}

std::vector<std::string> job::places() const {
  std::vector<std::string> all{"master"};  // and who may come
  for (int i = 0; i < 16; ++i) all.push_back(fmt::format("worker-{}", i));
  for (int i = 0; i < 16; ++i) all.push_back(fmt::format("server-{}", i));
  for (process const& p : all_)
    if (p.role != "launcher" && std::ranges::find(all, p.place) == all.end()) all.push_back(p.place);
  return all;
}

void job::after(world::duration pause, std::function<void()> what) {
  world::at(world::now() + pause, std::move(what));
}

void job::launch(std::string const& role, std::uint32_t id, std::map<std::string, std::string> variables,
                 std::uint64_t order) {
  if (over_ && role != "audit") return;
  bool const master = role == "master", launcher = role == "launcher";
  process p{.number = ++started_, .role = role, .id = id, .order = order, .started = world::now()};
  p.place = master ? master_at_ : launcher ? role : free_place(role, id);
  if (dark_.contains(p.place) && !plan_.launched && !master) return come(role, id, 500ms);
  if (dark_.contains(p.place) && order > 0) {
    orders_.push_back({role, id, std::move(variables), order});
    return after(500ms, [this] { pump(); });
  }
  if (dark_.contains(p.place))
    return after(500ms, [this, role, id, variables = std::move(variables)] { launch(role, id, variables); });
  p.name = master || launcher ? role : fmt::format("{}-{}", role == "ps" ? "server" : role, id);
  variables["WORLD_NUMBER"] = std::to_string(p.number);
  if (!launcher) {
    variables["EDL_ROLE"] = role;
    variables["EDL_JOB_NAME"] = "world";
    variables["EDL_JOB_TOKEN"] = token;
    variables["MY_POD_IP"] = world::address_of(p.place);
    variables["EDL_PLATFORM"] = "";
    if (!master) variables[role == "ps" ? "PS_ID" : "WORKER_ID"] = std::to_string(id);
  }
  p.pid = world::start({.name = p.name,
                        .host = p.place,
                        .main = launcher ? launcher_main : counting::main,
                        .arguments = command(),
                        .environment = variables});
  lines_.say(p.name, fmt::format("is started ({})", p.place));
  auto const trouble = troubled_.find(p.place);
  p.hit = trouble != troubled_.end() && world::now() < trouble->second;
  p.hits = p.hit;  // a cut of its place, say, that it cannot hand its work back through
  all_.push_back(p);
  happens(p, "start", {});
}

// By hand.
void job::come(std::string const& role, std::uint32_t id, milliseconds pause) {
  coming_.insert({role, id});
  after(pause, [this, role, id] {
    coming_.erase({role, id});
    launch(role, id,
           {{"MASTER_ADDR",
             fmt::format("tcp:{}:{}", parts_ ? master_name : world::address_of("master"), master_port)}});
  });
}

// By hand. Members that were told of the end by a master that was killed before its own: the next one needs
// others.
void job::bring_others() {
  after(5s, [this] {
    if (over_ || ending_) return;
    for (int n = int(living_or_coming("worker")); n < plan_.workers; ++n) come("worker", next_worker_++, 0ms);
    for (int i = 0; i < plan_.servers; ++i)
      if (!living_of("ps", std::uint32_t(i)) && !coming_.contains({"ps", std::uint32_t(i)}))
        come("ps", std::uint32_t(i), 0ms);
  });
}

std::size_t job::living_or_coming(std::string const& role) const {
  auto const of_role = [&](auto const& one) { return one.first == role; };
  return std::size_t(std::ranges::count_if(coming_, of_role)) +
         std::size_t(
             std::ranges::count_if(all_, [&](process const& p) { return p.role == role && !p.ended; }));
}

void job::launch_master() {
  std::map<std::string, std::string> variables{{"EDL_PORT", std::to_string(master_port)}};
  if (plan_.launched) {
    variables["EDL_LAUNCHER"] = fmt::format("tcp:{}:{}", world::address_of("launcher"), launcher_port);
    variables["EDL_LAUNCHER_TOKEN"] = launcher_token;
    variables["EDL_JOURNAL"] = std::string(directory) + "/journal";
  }
  // A journal lives and ends with a master's place, as that of a pod.
  if (parts_) {
    variables["EDL_JOURNAL"] = fmt::format("{}/{}.json", directory, master_at_);
    world::set_dns(master_name, master_at_);
  }
  launch("master", 0, variables);
  if (!plan_.launched && started_ > 1) bring_others();
}

void job::start() {
  world::mount_everywhere(directory, "storage");
  world::write_file("master", std::string(directory) + "/data.counted", "records");
  world::set_default_link({.latency = plan_.latency, .jitter = plan_.latency / 2});
  if (plan_.launched)
    launch("launcher", 0,
           {{"WORLD_TLS", plan_.tls ? "1" : "0"},
            {"LAUNCHER_PORT", std::to_string(launcher_port)},
            {"EDL_LAUNCHER_TOKEN", launcher_token}});
  launch_master();
  if (plan_.launched) return;
  for (int i = 0; i < plan_.servers; ++i) come("ps", std::uint32_t(i), milliseconds(draws_.between(0, 1500)));
  for (int i = 0; i < plan_.workers; ++i)
    come("worker", std::uint32_t(i), milliseconds(draws_.between(0, 1500)));
}

void job::end() {
  ending_ = true;
  for (process& p : all_)
    if (!p.ended && p.role != "launcher") world::kill(p.pid, SIGTERM);
}

void job::look() {
  auto const now = world::now();
  if (over_) return;
  if (now > expected_ && now - last_pass_ > 20s) {
    find_fault(fmt::format("nobody has computed for {:.0f} s, though nothing hinders the job",
                           std::chrono::duration<double>(now - last_pass_).count()));
    expected_ = now + 1h;
  }
  constexpr auto grace = 20s;
  for (process& p : all_)
    if (p.told_to_stop > 0ns && !p.ended && p.hits == 1 &&
        now > std::max(p.told_to_stop + grace, disk_bad_until_)) {
      find_fault(fmt::format("{} was told to stop by SIGTERM {} s ago", p.name, grace.count()));
      p.hits = 2;
    }
  if (plan_.launched && now > changed_ + 20s && scales_.empty()) look_at_size();
}

void job::look_at_size() {
  auto const judge = [&](fault::kind what, std::string const& role, std::size_t wanted) {
    auto const there = std::size_t(std::ranges::count_if(
        all_, [&](process const& p) { return p.role == role && !p.ended && p.wanted; }));
    // Nobody comes in the place of one that stands still and was told to go, before it is killed.
    bool const leaves =
        std::ranges::any_of(all_, [&](process const& p) { return p.role == role && !p.ended && !p.wanted; });
    // Another one goes only when one that takes the place of a killed one has joined.
    bool const comes = std::ranges::any_of(
        all_, [&](process const& p) { return p.role == role && !p.ended && p.started + 20s > world::now(); });
    // Others are told to go, and come, once the journal knows of it.
    bool const late = world::now() > changed_ + 45s, in_time = late || !slow_seen_,
               more = there > wanted && in_time && !comes,
               less = there < wanted && in_time && !leaves && !leaving_ && !trained_ && !exported_;
    if (unsure_.contains(what) || (!more && !less)) return;
    find_fault(fmt::format("the job has {} of {}, and {} are wanted", there, name_of(what), wanted));
    changed_ = world::now() + 1h;
  };
  judge(fault::kind::workers, "worker", wanted_workers_);
  judge(fault::kind::servers, "ps", wanted_servers_);
}

// ---- What the launcher is told ----

void job::order_start(std::string const& role, std::uint32_t id, std::map<std::string, std::string> variables,
                      std::uint64_t number) {
  if (process const* const p = living_of(role, id); p && p->wanted)
    lines_.say("launcher", fmt::format("is to start {}, which lives", p->name));
  std::erase_if(orders_, [&](order const& o) { return o.role == role && o.id == id; });
  orders_.push_back({role, id, std::move(variables), number});
  after(0ns, [this] { pump(); });
}

void job::order_stop(std::string const& role, std::uint32_t id, std::chrono::milliseconds grace) {
  after(0ns, [this, role, id, grace] {
    auto const waits =
        std::ranges::find_if(orders_, [&](order const& o) { return o.role == role && o.id == id; });
    process* const p = living_of(role, id);
    if (waits != orders_.end()) {
      if (!p) endings_.push_back({role, id, 0, 0, true, waits->number});
      orders_.erase(waits);
    }
    if (!p) return;
    p->wanted = false;
    lines_.say("launcher", fmt::format("stops {}", p->name));
    world::kill(p->pid, SIGTERM);
    after(grace, [this, grace, pid = p->pid, told = world::now()] {
      process const* const late = find(pid);
      if (!late || late->ended) return;
      // Who does not reach the master tries for 5 s to hand back what it has, also at the end of the job. A
      // write to slow storage ends first.
      process const* const master = this->master();
      bool const tries =
          world::now() < std::max(secluded_, disk_bad_until_) || !master || master->started > told;
      if (grace > (tries ? 5s : 0s) && !late->hit && !over_ && !ending_)
        find_fault(fmt::format("{} was told to stop, and had to be killed", late->name));
      world::kill(pid, SIGKILL);
    });
  });
}

void job::pump() {
  for (order const& o : std::exchange(orders_, {}))
    if (living_of(o.role, o.id))
      orders_.push_back(o);
    else
      launch(o.role, o.id, o.variables, o.number);
}

std::vector<std::pair<std::string, std::uint32_t>> job::running() const {
  std::vector<std::pair<std::string, std::uint32_t>> found;
  for (order const& o : orders_) found.emplace_back(o.role, o.id);
  for (process const& p : all_)
    if (!p.ended && (p.role == "ps" || p.role == "worker")) found.emplace_back(p.role, p.id);
  return found;
}

// ---- Who ends ----

void job::on_end(world::pid of, world::ending const& how) {
  if (auto const asks = scales_.find(of); asks != scales_.end()) {
    // While its storage fails a master keeps nothing of what it answers, and says so.
    if (how.code || how.signal)
      unsure_.insert(asks->second);
    else if (world::now() > disk_trouble_)
      unsure_.erase(asks->second);
    changed_ = std::max(changed_, world::now());
    scales_.erase(asks);
  }
  process* const p = find(of);
  if (!p) return;
  p->ended = how;
  lines_.say(p->name, how.signal ? fmt::format("is ended by signal {}", how.signal)
                                 : fmt::format("ends with code {}", how.code));
  bool const crashed = how.signal == SIGABRT || how.signal == SIGSEGV || how.signal == SIGBUS;
  if (crashed) find_fault(fmt::format("{} is ended by signal {}: {}", p->name, how.signal, p->last));
  if (p->role == "master")
    master_ended(*p);
  else if (p->role == "ps" || p->role == "worker")
    member_ended(*p);
}

void job::master_ended(process const& who) {
  if (over_ || who.replaced) return;
  less_known_ = less_known_ || world::now() < disk_trouble_;
  if (less_known_) unsure_ = {fault::kind::workers, fault::kind::servers};
  if (who.ended->signal) return after(milliseconds(draws_.between(50, 2500)), [this] { launch_master(); });
  // Who came too late to take the storage, as the one before it writes again. Its node is given up, and
  // another comes.
  if (parts_ && who.ended->code != 0 && who.last.find(" is in use by job ") != who.last.npos) {
    for (process& p : all_)
      if (p.role == "master" && p.replaced && !p.ended) world::kill(p.pid, SIGKILL);
    return after(milliseconds(draws_.between(500, 2500)), [this] { launch_master(); });
  }
  over_ = true;
  orders_.clear();
  // The end is tried again for 10 s.
  auto const now = world::now();
  bool const long_bad = now < disk_bad_until_ && now - disk_bad_since_ > 9s;
  static constexpr char const* unwritten_words[]{" cannot be written: ", "cannot write /job/",
                                                 "cannot create /job/", "cannot open /job/"};
  bool const unwritten = std::ranges::any_of(
      unwritten_words, [&](char const* words) { return who.last.find(words) != who.last.npos; });
  if (who.ended->code != 0 && ((steps_ == 0 && less_known_) || (unwritten && long_bad)))
    refused_ = who.last;
  else if (who.ended->code != 0)
    failure_ = fmt::format("the job ends with code {}: {}", who.ended->code, who.last);
}

void job::member_ended(process const& who) {
  world::ending const how = *who.ended;
  leaving_ = leaving_ || (who.role == "worker" && who.told_to_stop == 0ns && who.wanted && !who.noticed &&
                          how.code == 0 && how.signal == 0);
  bool const from_outside = who.hit || !who.wanted || ending_ || less_known_ || world::now() < disk_trouble_;
  // Records are waited for, as long as storage fails.
  bool const of_records = !how.signal && who.last.find("/data.counted") != who.last.npos;
  if ((!from_outside || of_records) && (how.code != 0 || how.signal != 0))
    find_fault(fmt::format("{} was not hit, and has ended with code {}, signal {}: {}", who.name, how.code,
                           how.signal, who.last));
  if (plan_.launched) {
    endings_.push_back({who.role, who.id, how.code, how.signal, !who.wanted, who.order});
    return pump();
  }
  // Who leaves by itself has heard of the end.
  if (how.code == 0 && how.signal == 0 && who.told_to_stop == 0ns && !who.noticed) {
    // One that stood still may hear of it late, when there is another master.
    if (process const* const newest = master(); newest && newest->number != who.joined) bring_others();
    return;
  }
  if (over_ || who.replaced) return;
  come(who.role, who.role == "worker" ? next_worker_++ : who.id, milliseconds(draws_.between(100, 3000)));
}

// As a cluster does with a node that nobody hears: its pod is made elsewhere, and may live on there for a
// while, with all of the storage.
void job::replace_by_hand(process& who) {
  after(30s, [pid = who.pid] {
    if (world::alive(pid)) world::kill(pid, SIGKILL);
  });
  bool const again = coming_.contains({who.role, who.id}) || who.replaced;
  if (!plan_.elsewhere || ending_ || again) return;
  who.replaced = true;
  come(who.role, who.role == "worker" ? next_worker_++ : who.id, milliseconds(draws_.between(100, 3000)));
}

// ---- What they say ----

void job::find_fault(std::string what) {
  lines_.say("world", "FOUND: " + what);
  if (findings_.size() < 20) findings_.push_back(std::move(what));
}

void job::on_line(world::line const& l) {
  process* const p = find(l.from);
  if (!p) return;
  log_line const line = read_line(l.text);
  p->last = line.text;
  if (line.text.starts_with("Loss = ")) {
    ++steps_;
    unsigned long long version = 0;
    auto const at = line.text.find("steps = ");
    process const* const newest = master();
    bool const superseded = p->joined == lost_master_ || (newest && p->joined != newest->number);
    bool const counts = !void_ && !(parts_ && superseded);
    if (at != line.text.npos && std::sscanf(line.text.c_str() + at, "steps = %llu", &version) == 1 && counts)
      acknowledged_ = std::max<std::uint64_t>(acknowledged_, version);
    last_step_ = l.when;
    auto const steps =
        std::uint64_t(32 * plan_.epochs / (plan_.has_servers() ? plan_.grads_to_wait : plan_.workers));
    if (process const* const master = this->master();
        master && version >= steps && !std::exchange(trained_, true))
      happens(*master, "end", {});
  }
  lines_.hear(p->name, line);
  if (!line.level.empty() && line.level != "DEBUG") happens(*p, {}, line.text);
  judge_line(*p, line);
}

// A backup may be a step behind its server, which has written the checkpoint.
void job::look_at_history(std::uint64_t from) {
  if (from + on_the_way() < written_)
    find_fault(fmt::format("the job goes on from version {}, behind its own checkpoint of version {}", from,
                           written_));
}

void job::judge_line(process& who, log_line const& l) {
  if (is_error(l.level) && !who.hit && !less_known_ && !over_ && !ending_ && world::now() > disk_trouble_)
    find_fault(fmt::format("{} was not hit, and says: {}", who.name, l.text));
  // No disk here alters what it has.
  if (l.text.find(" is passed over (") != l.text.npos) find_fault(who.name + ": " + l.text);
  if (who.role == "ps" && l.text.starts_with("generation ")) {
    // A new master without a journal begins anew, or with its checkpoint, where no server lives that had any
    // state.
    bool const had_state = std::ranges::any_of(all_, [&](process const& p) {
      return p.role == "ps" && !p.ended && p.configured_by != 0 && p.configured_by != who.joined;
    });
    unsigned long long version = 0;
    auto const saved = l.text.find(" from /job/checkpoints/version-");
    bool const restored =
        saved != l.text.npos &&
        std::sscanf(l.text.c_str() + saved, " from /job/checkpoints/version-%llu", &version) == 1;
    if ((restored || l.text.ends_with("from the seed")) && !had_state) {
      acknowledged_ = valid_ = version;
      look_at_history(version);
    }
    who.configured_by = who.joined;
  }
  if (l.text.starts_with("generation ") || l.text.starts_with("World ")) void_ = false;
  if (l.text.starts_with("cannot follow ")) passes_[who.number] = 0;  // the next one may take long again
  if (who.role != "master" || who.replaced) return;
  // Those who have not heard of the end are waited for.
  if (l.text.starts_with("model written to /job/model")) {
    expected_ = std::max(expected_, world::now() + 60s);
    exported_ = true;
  }
  // Who is found to be gone is replaced, and the launcher is told soon.
  static constexpr char const* changes[]{" is lost: ", " has left", " is started", " is about to leave",
                                         "is not needed any more"};
  if (std::ranges::any_of(changes, [&](char const* words) { return l.text.find(words) != l.text.npos; }))
    changed_ = std::max(changed_, world::now());
  unsigned long long version = 0, before = 0, wanted = 0;
  if (std::sscanf(l.text.c_str(), "Evaluation metrics[v=%llu", &version) == 1) evaluated_.insert(version);
  if (std::sscanf(l.text.c_str(), "Checkpoint of version %llu written", &version) == 1)
    written_ = std::max<std::uint64_t>(written_, version);
  if (std::sscanf(l.text.c_str(), "Going back to version %llu", &version) == 1) {
    acknowledged_ = valid_ = version, void_ = true;
    look_at_history(version);
  }
  // A member of an earlier world may have come back with its copy, to a master that has gone back behind it.
  if (auto const from = l.text.rfind(" from version ");
      l.text.starts_with("World ") && from != l.text.npos &&
      std::sscanf(l.text.c_str() + from, " from version %llu", &version) == 1) {
    acknowledged_ = std::max<std::uint64_t>(acknowledged_, version);
    look_at_history(version);
  }
  // Some may have been on their way to servers, or answered by the first of them.
  if (std::sscanf(l.text.c_str(), "Going on at version %llu", &version) == 1) {
    if (version + on_the_way() < acknowledged_)
      find_fault(fmt::format("the servers go on at version {}, and a worker was told of {}", version,
                             acknowledged_));
    acknowledged_ = std::max<std::uint64_t>(acknowledged_, version);
    look_at_history(version);
  }
  if (std::sscanf(l.text.c_str(), "records: %llu counted once", &version) == 1 && trained_ &&
      version != std::uint64_t(counting::records) * std::uint64_t(plan_.epochs))
    find_fault("the master tells what was not: " + l.text);
  if (std::sscanf(l.text.c_str(), "Scaling from %llu to %llu", &before, &wanted) == 2) {
    (l.text.find("worker") != l.text.npos ? wanted_workers_ : wanted_servers_) = std::uint32_t(wanted);
    most_workers_ = std::max(most_workers_, wanted_workers_);
    changed_ = std::max(changed_, world::now());
  }
  // By an older journal the job has an older size.
  if (l.text.find("goes by the journal before") != l.text.npos || l.text.find("begins anew") != l.text.npos)
    unsure_ = {fault::kind::workers, fault::kind::servers};
  if (l.text.find("failed too often and is not replaced") != l.text.npos)
    unsure_.insert(fault::kind::workers);
  if (auto const at = l.text.find("a replacement starts in ");
      at != l.text.npos && std::sscanf(l.text.c_str() + at, "a replacement starts in %llu", &before) == 1)
    changed_ = std::max(changed_, world::now() + std::chrono::seconds(before));
  for (process& p : all_) {
    if (p.ended || (p.role != "ps" && p.role != "worker")) continue;
    std::string const name = fmt::format("{} {} ", p.role == "ps" ? "server" : "worker", p.id);
    if (l.text == name + "joined") p.joined = who.number;
    if (l.text.starts_with(name + "is refused: the job has ")) p.hit = true;  // it is made smaller
    if (!l.text.starts_with(name + "is lost: ")) continue;
    if (l.text.ends_with("a new process takes its place")) {
      // Of two that live a new master knows only who joins it last.
      p.hit = p.hit || std::ranges::any_of(all_, [&](process const& other) {
                return &other != &p && other.role == p.role && other.id == p.id && !other.ended;
              });
      continue;
    }
    if (!p.hit && p.wanted && p.joined == who.number && !less_known_ && world::now() > disk_trouble_)
      find_fault(fmt::format("{} was not hit, and the master says: {}", p.name, l.text));
    p.hit = p.given_up = true;
    // By hand somebody ends what does not end by itself.
    if (!plan_.launched) replace_by_hand(p);
  }
}

}  // namespace simulation
