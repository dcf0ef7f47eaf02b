// SPDX-License-Identifier: Apache-2.0
// `serve` beside a minimal server over ONNX Runtime, with the same networks, from clients in this process:
// one request at a time, and many. They take turns, so that what else the machine does is shared. Beside them
// an echo of as many bytes over the same kind of socket.
#include <fmt/format.h>
#include <unistd.h>

#include <asio/read.hpp>
#include <cstdlib>
#include <edl/cli/program.hpp>
#include <filesystem>
#include <optional>
#include <thread>

#include "endurance.hpp"
#include "load.hpp"
#include "models.hpp"
#include "program_at_work.hpp"

namespace {

using namespace bench;
using edl::cli::flag;

std::vector<served_model> const& models() {
  static std::vector<served_model> const all{one_model<small_mlp>("mlp"), one_model<cifar>("cifar")};
  return all;
}

std::string extents_of(std::string const& model) { return model == "mlp" ? "784" : "32 32 3"; }

/// Echoes 300 bytes for each request of one client.
class echo {
 public:
  explicit echo(std::size_t request) : acceptor_(io_, {asio::ip::address_v4::loopback(), 0}) {
    thread_ = std::thread([this, request] {
      tcp::socket s = acceptor_.accept();
      s.set_option(tcp::no_delay(true));
      std::string bytes(request, '\0');
      asio::error_code failed;
      while (asio::read(s, asio::buffer(bytes), failed), !failed)
        asio::write(s, asio::buffer(bytes.data(), answer), failed);
    });
    client_.emplace(acceptor_.local_endpoint().port());
  }
  ~echo() {
    client_.reset();
    thread_.join();
  }
  void ask(std::string const& request) {
    client_->ask(request);
    asio::read(client_->socket(), asio::buffer(back_));
  }

 private:
  static constexpr std::size_t answer = 300;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  std::thread thread_;
  std::optional<client> client_;
  std::array<char, answer> back_;
};

struct server {
  std::string name;
  std::uint16_t port;
  std::string one, many, text;  ///< requests: of a record, of 64, of a record as JSON
  std::vector<double> times, text_times, alone, together;
};

void measure(server& s, double turn) {
  auto const ask = [&](std::string const& what, std::vector<double>& into) {
    client c(s.port);
    one_at_a_time(
        [&] {
          c.ask(what);
          c.good_answer();
        },
        turn, into);
  };
  ask(s.one, s.times);
  ask(s.text, s.text_times);
  s.alone.push_back(rate(s.port, s.one, 1, 32, turn));
  s.together.push_back(rate(s.port, s.many, 64, 8, turn));
}

void tell(std::string const& model, std::vector<server> const& all) {
  auto const line = [&](char const* load, auto const& number, bool less, char const* form) {
    for (server const& s : all) {
      double const mine = number(s), ours = number(all.front());
      if (mine == 0) continue;
      fmt::print("| {} | {} | {} | {} | {:.2f} |\n", model, load, s.name,
                 fmt::format(fmt::runtime(form), mine), less ? mine / ours : ours / mine);
    }
  };
  for (double const q : {0.5, 0.99}) {
    std::string const p = fmt::format("p{:.0f}", 100 * q);
    line(("one record at a time, " + p).c_str(), [&](server const& s) { return quantile(s.times, q); }, true,
         "{:.3f} ms");
    line(("the same as JSON, " + p).c_str(), [&](server const& s) { return quantile(s.text_times, q); }, true,
         "{:.3f} ms");
  }
  line(
      "32 clients, a record in each request", [](server const& s) { return quantile(s.alone, 0.5); }, false,
      "{:.0f} /s");
  line(
      "8 clients, 64 records in each request", [](server const& s) { return quantile(s.together, 0.5); },
      false, "{:.0f} /s");
}

int contest(edl::cli::command_line const& l) {
  double const turn = edl::cli::parse_number<double>(l.text("turn"));
  scratch_folder const folder;
  char const* const runtime = std::getenv("EDL_ONNXRUNTIME");
  fmt::print("{}\n\n| network | load | server | | edl is better by |\n|---|---|---|---|---|\n",
             load_average());
  for (served_model const& m : models()) {
    if (auto const only = l.all("network"); !only.empty() && std::ranges::find(only, m.name) == only.end())
      continue;
    m.write(folder.path + "/" + m.name);
    std::string const one = inference(m.name, 1, m.values);
    program_at_work const ours({"/proc/self/exe", m.name, "serve", "--port=0", "--model_name=" + m.name,
                                "--kernels=" + l.text("kernels"),
                                "--model_path=" + folder.path + "/" + m.name + ".safetensors"});
    std::vector<server> all{{"edl", port_of(ours), one, inference(m.name, 64, m.values),
                             instances("/v1/models/" + m.name + ":predict", m.values)}};
    std::optional<program_at_work> peer;
    if (runtime) {
      peer.emplace(std::vector<std::string>{
          "sh", "-c",
          fmt::format("cd '{}' && exec node {}/onnx_server.mjs {}/{}.onnx 64 {}", runtime,
                      BENCH_SERVE_SOURCES, folder.path, m.name, extents_of(m.name))});
      if (auto const port = port_of(peer->until("")))
        all.push_back({"ONNX Runtime, node", port, post("/", "", bytes_of(m.values)),
                       post("/", "", bytes_of(64 * m.values)), instances("/json", m.values)});
    }
    if (all.size() == 1)
      fmt::print(stderr,
                 "bench-serve: no peer: EDL_ONNXRUNTIME names no folder with npm's onnxruntime-node\n");
    std::vector<server> bare{{.name = "bare sockets"}};
    {
      echo e(one.size());
      for (server& s : all) measure(s, turn / 2);  // warms up
      for (server& s : all) s.times = s.text_times = s.alone = s.together = {};
      for (std::int64_t r = 0; r < l.number("rounds"); ++r) {
        one_at_a_time([&] { e.ask(one); }, turn / 2, bare.front().times);
        for (server& s : all) measure(s, turn);
      }
    }
    all.push_back(bare.front());
    tell(m.name, all);
  }
  fmt::print("\n{}\n", load_average());
  return 0;
}

/// The MLP's server, and a job that trains it, slowly.
int endure(edl::cli::command_line const& l) {
  scratch_folder const folder;
  double const seconds = 60 * edl::cli::parse_number<double>(l.text("minutes")),
               every = edl::cli::parse_number<double>(l.text("every"));
  std::string const data = folder.path + "/train", directory = folder.path + "/checkpoints";
  program_at_work(
      {"/proc/self/exe", "mlp", "data", "--from=synthetic:train", "--to=" + data, "--fraction=0.1"})
      .wait();
  constexpr int steps = 10, records = 16;  // of a version, of a step
  ::setenv("BENCH_FEED_US", fmt::format("{:.0f}", 1e6 * every / steps / records).c_str(), 1);
  program_at_work job({"/proc/self/exe", "mlp", "train", "--training_data=" + data, "--num_epochs=1000000",
                       "--checkpoint_dir=" + directory, fmt::format("--checkpoint_steps={}", steps),
                       fmt::format("--history_steps={}", steps), fmt::format("--minibatch_size={}", records),
                       "--keep_checkpoint_max=3", "--num_threads=1"});
  std::jthread const hears_job([&job] { job.until("\n"); });
  while (!std::filesystem::exists(directory) ||
         std::ranges::none_of(std::filesystem::directory_iterator(directory), [](auto const& entry) {
           return std::filesystem::exists(entry.path() / "manifest.json");
         }))
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  program_at_work server(
      {"/proc/self/exe", "mlp", "serve", "--port=0", "--model_name=mlp", "--model_path=" + directory});
  auto const port = port_of(server);
  std::jthread const hears_server([&server] { server.until("\n"); });
  endurance one(port, server.id(), inference("mlp", 1, 784), directory,
                edl::cli::parse_number<double>(l.text("rate")));
  fmt::print("{}\n", load_average());
  one.run(std::max(10.0, seconds / 10), seconds);
  one.tell();
  fmt::print("{}\n", load_average());
  ::kill(job.id(), SIGKILL);
  ::kill(server.id(), SIGKILL);
  return 0;
}

std::vector<flag> flags() {
  using enum flag::value_type;
  return {{.name = "network", .help = "these alone", .choices = {"mlp", "cifar"}, .repeats = true},
          {.name = "kernels",
           .fallback = "fixed",
           .help = "of edl",
           .choices = {"fixed", "measured", "direct", "own"}},
          {.name = "rounds",
           .fallback = "8",
           .help = "turns of each",
           .type = whole,
           .least = 1,
           .most = 1'000'000},
          {.name = "turn",
           .fallback = "500",
           .help = "milliseconds that a turn takes, for each load",
           .type = number,
           .lowest = 1,
           .highest = 1e6},
          {.name = "minutes",
           .fallback = "60",
           .help = "of `endure`",
           .type = number,
           .lowest = 0.1,
           .highest = 1e5},
          {.name = "every",
           .fallback = "60",
           .help = "of `endure`: seconds between two versions of the model",
           .type = number,
           .lowest = 0.1,
           .highest = 1e5},
          {.name = "rate",
           .fallback = "1000",
           .help = "of `endure`: good requests a second",
           .type = number,
           .lowest = 0.1,
           .highest = 1e6}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1)
    for (served_model const& m : models())
      if (m.name == argv[1]) return m.run(argc - 1, argv + 1);
  return edl::cli::run_program({.command = "bench-serve",
                                .flags = flags(),
                                .most = 1,
                                .arguments = "`endure`: see how a server fares for a while"},
                               "`serve` beside a minimal server over ONNX Runtime, in turns.",
                               {argv + 1, argv + argc}, [](edl::cli::command_line const& l) {
                                 return l.arguments() == edl::cli::words{"endure"} ? endure(l) : contest(l);
                               });
}
