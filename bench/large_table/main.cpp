// SPDX-License-Identifier: Apache-2.0
// A table that takes most of a machine's memory: it is trained, written while it is trained, and read by
// another process. Told are the times and the most memory that each process had.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/layout_digest.hpp"
#include "edl/cli/program.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/random.hpp"
#include "edl/job/ps/store.hpp"

namespace {

using clock_type = std::chrono::steady_clock;
using edl::cli::flag;

constexpr std::size_t per_batch = 26 * 512;

std::vector<flag> flags() {
  using enum flag::value_type;
  return {{.name = "gigabytes",
           .fallback = "20",
           .help = "that the table takes",
           .type = number,
           .lowest = 0.001,
           .highest = 1e6},
          {.name = "width", .fallback = "16", .help = "of a row", .type = whole, .least = 1, .most = 65536},
          {.name = "bfloat16", .help = "weights are kept as bfloat16", .type = truth},
          {.name = "directory", .fallback = "large-table", .help = "where checkpoints go, and lie"}};
}

/// A figure of /proc/self/status, in GB.
double memory(std::string const& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name)) return std::stod(line.substr(name.size())) / 1e6;
  return 0;
}

double seconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double>(clock_type::now() - begin).count();
}

struct one_table {
  explicit one_table(edl::cli::command_line const& l)
      : layout{.variables = {{"w", {16}, 0}},
               .parameters = 16,
               .state = 0,
               .tables = {{"ids", int(l.number("width"))}}},
        store({.layout = layout,
               .elements = {0, 16},
               .slots = {0, edl::sparse::hash_slots},
               .tables = {{.width = int(l.number("width")),
                           .policy = {.values = l.truth("bfloat16") ? edl::nn::row_values::bfloat16
                                                                    : edl::nn::row_values::float32},
                           .remembers_removed = true}},
               .rule = rule,
               .when = when}),
        slopes(per_batch * std::size_t(l.number("width")), 0.01f) {}

  /// A step on ids [first, first + per_batch), as a hash scatters them.
  void push(std::uint64_t first) {
    for (std::size_t i = 0; i < per_batch; ++i) ids[i] = edl::mix(3, first + i);
    edl::sparse::row_gradients const rows{ids, slopes};
    store.push({{{0, task++}, 0, 1}, std::uint32_t(per_batch)}, store.version(), dense, {}, {&rows, 1});
  }

  void write(edl::ps::full_snapshot const& what, std::string const& directory) {
    std::string const path = edl::checkpoint::checkpoint_path(directory, what.version());
    auto const earlier = edl::checkpoint::begin_checkpoint(path);
    edl::checkpoint::manifest m{
        .job = "large", .version = what.version(), .layout = edl::checkpoint::layout_digest(layout)};
    m.files = write_snapshot(what, path, layout, {.most_changes = 8});
    edl::checkpoint::commit_checkpoint(path, m, earlier);
  }

  edl::parameter_layout const layout;
  edl::rule<edl::adagrad> const rule{edl::adagrad{.learning_rate = 0.01f}};
  edl::ps::asynchronous const when;
  edl::ps::store store;
  std::vector<std::uint64_t> ids = std::vector<std::uint64_t>(per_batch);
  std::vector<float> slopes, dense = std::vector<float>(16);
  std::uint32_t task = 0;
};

void tell(char const* what, double seconds, one_table const& t) {
  fmt::print("{}: {:.1f} s, {} million rows, {:.2f} GB in the table, {:.2f} GB resident, {:.2f} GB at most\n",
             what, seconds, t.store.rows().table(0).size() / 1'000'000,
             double(t.store.rows().table(0).bytes()) / 1e9, memory("VmRSS:"), memory("VmHWM:"));
  std::fflush(stdout);
}

int run(edl::cli::command_line const& l) {
  std::string const directory = l.text("directory");
  one_table t(l);
  auto begin = clock_type::now();
  if (l.arguments() == std::vector<std::string>{"restore"}) {
    t.store.restore(*edl::checkpoint::newest_valid(directory, edl::checkpoint::check::sizes));
    tell("restored", seconds_since(begin), t);
    return 0;
  }
  double const bytes = std::stod(l.text("gigabytes")) * 1e9;
  std::uint64_t made = 0;
  while (double(t.store.rows().table(0).bytes()) < bytes)
    for (int i = 0; i < 100; ++i, made += per_batch) t.push(made);
  tell("trained", seconds_since(begin), t);
  // Training goes on while the whole is written, and then while what has changed is.
  for (char const* what : {"whole checkpoint, trained meanwhile", "changes of a tenth of the rows"}) {
    auto const snapshot = t.store.full_snapshot();
    begin = clock_type::now();
    auto done = std::async(std::launch::async, [&] { t.write(snapshot, directory); });
    std::uint64_t steps = 0;
    for (; done.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready; ++steps)
      t.push(steps * per_batch % made);
    done.get();
    tell(what, seconds_since(begin), t);
    // A tenth of the rows, those of this round included.
    for (; steps < made / per_batch / 10; ++steps) t.push(steps * per_batch);
  }
  std::uint64_t written[2]{};
  for (auto const& f : edl::checkpoint::read_manifest(
                           *edl::checkpoint::newest_valid(directory, edl::checkpoint::check::sizes))
                           .files)
    if (f.name.starts_with("rows-")) written[written[0] > 0] += f.bytes;
  fmt::print("the whole has {:.2f} GB, the changes {:.2f} GB: {:.1f} %\n", double(written[0]) / 1e9,
             double(written[1]) / 1e9, 100 * double(written[1]) / double(written[0]));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return edl::cli::run_program(
      {.command = "bench-large-table", .flags = flags(), .most = 1, .arguments = "`restore`"},
      "A table that takes most of the memory: trained, written, and restored by `restore`.",
      {argv + 1, argv + argc}, run);
}
