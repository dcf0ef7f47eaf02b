// SPDX-License-Identifier: Apache-2.0
// The same training with and without what lets people look at it, in turns: its history, event files for
// TensorBoard, the page with a reader that follows it, and, where there are several processes, metrics that
// are read every second. What a pair of turns differs by is told as a ratio of records a second, and as one
// of processor time, which other programs disturb less. Many short turns tell more than few long ones: what
// disturbs a machine then hits both of a pair, or few pairs. The interval of the median says how much a run
// can tell. With --together both of a pair run at once, on one and the same core, and wait for it in slices
// of milliseconds: whatever slows the machine slows both alike, and their processor time tells them apart to
// a fraction of a per cent. With --with the pairs differ by any flags instead.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <edl/edl.hpp>
#include <future>
#include <iterator>
#include <random>
#include <regex>
#include <sstream>
#include <thread>

#include "../serve/load.hpp"
#include "../serve/program_at_work.hpp"
#include "edl/cli/program.hpp"

namespace {

using namespace bench;
using edl::cli::flag, edl::cli::words;
namespace nn = edl::nn;

struct watched {
  static constexpr auto network = nn::sequential(nn::image{.height = 28, .width = 28},
                                                 nn::dense{.units = 128}, nn::relu{}, nn::dense{.units = 10});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 0.001f};
  static void feed(edl::example const& record, edl::sample<watched>& into, edl::mode m) {
    into.features = record.floats("image", {28, 28, 1}) / 255.0f;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

/// Reads what a server says to this question, until it ends or is left alone.
void follow(std::uint16_t port, std::string const& path) try {
  client c(port);
  c.ask(fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path));
  std::array<char, 65536> some;
  for (asio::error_code failed; !failed;) c.socket().read_some(asio::buffer(some), failed);
} catch (asio::system_error const&) {  // the job has ended
}

struct run_result {
  double rate = 0, processor = 0;  // records a second; seconds
};

/// Of a whole job.
run_result run_of(words const& command) {
  run_result r;
  {
    program_at_work job(command);
    std::vector<std::jthread> readers;
    std::regex const at("(dashboard|metrics): http://127\\.0\\.0\\.1:([0-9]+)/"),
        rate(", ([0-9]+) records/s$");
    for (std::string line; !(line = job.until("")).empty();) {
      std::smatch found;
      if (line.find("trained ") != line.npos && std::regex_search(line, found, rate))
        r.rate = std::stod(found[1]);
      if (!std::regex_search(line, found, at)) continue;
      auto const port = std::uint16_t(std::stoi(found[2]));
      if (found[1] == "dashboard")
        readers.emplace_back([port] { follow(port, "/api/live"); });
      else
        readers.emplace_back([port](std::stop_token const& over) {
          for (int tenths = 0; !over.stop_requested(); ++tenths) {
            if (tenths % 10 == 0) follow(port, "/metrics");
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
          }
        });
    }
    r.processor = job.wait();
  }
  if (r.rate == 0) throw std::runtime_error("a training has not told its speed");
  return r;
}

/// Where the median of what all these are drawn from lies, with 95 %: by their order, whatever the noise is.
std::pair<double, double> interval(std::vector<double>& all) {
  std::ranges::sort(all);
  double const n = double(all.size());
  auto const from = std::size_t(std::max(0.0, std::floor((n - 1.96 * std::sqrt(n)) / 2)));
  return {all[from], all[all.size() - 1 - from]};
}

/// This process, and those that it starts, compute on one core.
void keep_to(int core) {
  ::cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(std::size_t(core), &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0)
    throw std::runtime_error(fmt::format("core {} is not given to this process", core));
}

words split(std::string const& text) {
  std::istringstream from(text);
  return {std::istream_iterator<std::string>(from), {}};
}

int contest(edl::cli::command_line const& l) {
  scratch_folder const folder;
  std::string const data = folder.path + "/train";
  program_at_work({"/proc/self/exe", "model", "data", "--from=synthetic:train", "--to=" + data,
                   "--fraction=" + l.text("fraction")})
      .wait();
  fmt::print(
      "{}\n\n| processes | of those without | median | its 95 % | quartiles |\n|---|---|---|---|---|\n",
      load_average());
  struct kind {
    std::string name;
    words flags;
  };
  words const with = split(l.text("with"));
  std::vector<kind> kinds{{"one", {}},
                          {"a master, a server, a worker", {"--num_ps_pods=1", "--num_workers=1"}}};
  if (!with.empty()) kinds = {{l.text("of"), split(l.text("of"))}};
  bool const together = l.truth("together");
  if (together) keep_to(1);  // what reads pages does not take the jobs' core
  std::mt19937 drawn(1);
  for (auto const& kind : kinds) {
    std::vector<double> rates, processor;
    auto const run = [&](bool on) {
      std::string const directory = folder.path + (on ? "/on" : "/off");
      words command{"/proc/self/exe",
                    "model",
                    "train",
                    "--training_data=" + data,
                    "--num_epochs=" + l.text("epochs"),
                    "--checkpoint_dir=" + directory};
      if (together) command.insert(command.begin() + 1, "--core=0"), command.push_back("--num_threads=1");
      command.insert(command.end(), kind.flags.begin(), kind.flags.end());
      if (!on || !with.empty()) command.push_back("--history_steps=0");
      if (on) command.insert(command.end(), with.begin(), with.end());
      if (on && with.empty()) {
        command.insert(command.end(), {"--dashboard=0", "--tensorboard_log_dir=" + directory + "/events"});
        if (!kind.flags.empty()) command.push_back("--metrics_port=0");
      }
      run_result const r = run_of(command);
      std::filesystem::remove_all(directory);
      return r;
    };
    for (std::int64_t pair = 0; pair <= l.number("rounds"); ++pair) {
      bool const first = drawn() % 2 == 0;
      run_result results[2];
      auto one = std::async(together ? std::launch::async : std::launch::deferred, run, first);
      if (!together) one.wait();
      results[!first] = run(!first);
      results[first] = one.get();
      if (pair == 0) continue;  // it warms up
      rates.push_back(results[1].rate / results[0].rate);
      processor.push_back(results[1].processor / results[0].processor);
    }
    for (auto const& [what, all] : {std::pair{"records a second", &rates}, {"processor time", &processor}}) {
      if (together && all == &rates) continue;  // of a job that waits for the other
      auto const [least, most] = interval(*all);
      fmt::print("| {} | {} | {:.4f} | {:.4f} to {:.4f} | {:.4f} to {:.4f} |\n", kind.name, what,
                 quantile(*all, 0.5), least, most, quantile(*all, 0.25), quantile(*all, 0.75));
    }
    std::fflush(stdout);
  }
  fmt::print("\n{}\n", load_average());
  return 0;
}

std::vector<flag> flags() {
  using enum flag::value_type;
  return {
      {.name = "rounds",
       .fallback = "60",
       .help = "pairs of turns",
       .type = whole,
       .least = 1,
       .most = 10'000},
      {.name = "together",
       .fallback = "false",
       .help = "both of a pair run at once on core 0, and are told apart by processor time",
       .type = truth},
      {.name = "epochs", .fallback = "4", .help = "of a training", .type = whole, .least = 1, .most = 10'000},
      {.name = "fraction",
       .fallback = "0.5",
       .help = "of 60,000 records",
       .type = number,
       .lowest = 0.01,
       .highest = 1},
      {.name = "with", .help = "flags of one of each pair; empty: what lets people look at it", .type = text},
      {.name = "of", .help = "with --with: flags of both", .type = text}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "--core=0") {
    keep_to(0);
    ++argv, --argc;
  }
  if (argc > 1 && std::string_view(argv[1]) == "model") return edl::run<watched>(argc - 1, argv + 1);
  return edl::cli::run_program({.command = "bench-observed", .flags = flags(), .most = 0},
                               "What it costs to look at a training, or what flags cost, in turns.",
                               {argv + 1, argv + argc}, contest);
}
