// SPDX-License-Identifier: Apache-2.0
// What a job writes, beside what others have written there.
#include "edl/job/train/setup/outputs.hpp"

#include "app/job.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "job/train/files.hpp"
#include "text.hpp"

namespace outputs_test {

using job::count, job::has, job::slurp, job::train;
using job::damage, job::lines, job::lines_in, job::model, job::names_in, job::part_of, job::several,
    job::with;
using namespace std::chrono_literals;

TEST_CASE("two identical commands notice each other, and a killed one is nobody") {
  for (lines const& processes : {lines{}, several}) {
    job::scratch const dir;
    lines const command = train(with({"--checkpoint_dir=" + dir / "c", "--checkpoint_steps=8"}, processes));
    job::run first(command, {.env = {{"TINY_DELAY_US", "5000"}}});
    REQUIRE(first.says("Checkpoint of version "));
    job::run second(command);
    CHECK(second.wait() == 1);
    CAPTURE(second.log());
    CHECK(has(second.log(), "--checkpoint_dir=" + dir / "c is in use by job 'tiny' (process " +
                                std::to_string(first.pid()) + " on "));
    CHECK(has(second.log(), "wait for its end, stop it, or name another directory"));
    CHECK_FALSE(first.ended());
    ::kill(first.pid(), SIGKILL);
    CHECK(first.wait() == 128 + SIGKILL);
    job::run third(command);
    CHECK(third.wait() == 0);
    CAPTURE(third.log());
    CHECK(has(third.log(), "going on from " + dir / "c/version-"));
    CHECK(has(third.log(), "Epoch 0: 2048 records in the data set, 2048 counted once"));
  }
}

TEST_CASE("a place where nothing can be written is refused before anything is trained") {
  job::scratch const dir;
  std::ofstream(dir / "file") << "data";
  for (char const* flag : {"--checkpoint_dir=", "--output=", "--tensorboard_log_dir=", "--profile="}) {
    CAPTURE(flag);
    job::run j(train({flag + dir / "file"}));
    CHECK(j.wait() == 1);
    CHECK(has(j.log(), flag + dir / "file" + ": Not a directory"));
    CHECK_FALSE(has(j.log(), "Starting epoch"));
  }
  CHECK(slurp(dir / "file") == "data");
}

TEST_CASE("a bound of memory that no plan keeps to is refused by the master, before anything is removed") {
  job::scratch const dir;
  std::filesystem::create_directory(dir / "p");
  std::ofstream(dir / "p/worker-0.txt") << "earlier";
  job::run j(
      train(with({"--memory_budget=1", "--minibatch_size=100000", "--profile=" + dir / "p"}, several)));
  CHECK(j.wait() == 1);
  CAPTURE(j.log());
  CHECK(has(j.log(), "--memory_budget=1: the network takes "));
  CHECK_FALSE(has(j.log(), "joined"));
  CHECK(slurp(dir / "p/worker-0.txt") == "earlier");
}

TEST_CASE("a killed master's successor is not locked out") {
  job::scratch const dir;
  job::run j(train(with({"--checkpoint_dir=" + dir / "c", "--checkpoint_steps=8"}, several)),
             {.env = {{"TINY_DELAY_US", "1000"}}});
  REQUIRE(j.says("Checkpoint of version "));
  ::kill(j.find("master"), SIGKILL);
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "this one takes its place"));
  CHECK_FALSE(has(j.log(), "is in use by"));
  CHECK(job::run({"audit", dir / "c"}).wait() == 0);
}

TEST_CASE("predictions of an earlier, longer run do not lie beside the new ones") {
  for (lines const& processes : {lines{}, several}) {
    job::scratch const dir;
    auto const predict = [&](std::string const& data, std::string const& minibatch) {
      job::run j(with({"predict", "--prediction_data=" + data, "--prediction_outputs=" + dir / "p",
                       "--checkpoint_dir_for_init=" + model().output, "--minibatch_size=" + minibatch},
                      processes));
      CHECK(j.wait() == 0);
      return j.log();
    };
    predict(job::data().training, "32");
    CHECK(lines_in(dir / "p") == 1 + 2048);
    std::ofstream(dir / "p/notes.txt") << "mine";
    std::ofstream(dir / "p/part-00040.npy") << "old";
    std::ofstream(dir / "p/.part-00000.csv.tmp-0123456789abcdef") << "half";
    std::string const log = predict(job::data().validation, "64");
    CAPTURE(log);
    CHECK(has(log, "removed 2 files of an earlier run from " + dir / "p"));
    CHECK(lines_in(dir / "p") == 1 + 512);
    CHECK(names_in(dir / "p") == lines{".edl-lock", "notes.txt", "predictions.csv"});
  }
}

TEST_CASE("predictions of an earlier run stay where the next command is refused") {
  job::scratch const dir;
  std::filesystem::create_directory(dir / "p");
  std::ofstream(dir / "p/predictions.csv") << "earlier";
  edl::checkpoint::export_model(dir / "other.safetensors",
                                {.variables = {{"dense/kernel", {2, 3}, 0}}, .parameters = 6},
                                std::vector<float>(6), {}, 1, {});
  for (lines const& processes : {lines{}, several})
    for (auto const& [flags, why] :
         {std::pair{lines{"--prediction_columns=none", "--checkpoint_dir_for_init=" + model().output},
                    "the records have no 'none'"},
          std::pair{lines{"--checkpoint_dir_for_init=" + dir / "other.safetensors"},
                    "does not belong to this model"}}) {
      job::run j(with(with({"predict", "--prediction_data=" + job::data().validation,
                            "--prediction_outputs=" + dir / "p"},
                           flags),
                      processes));
      CHECK(j.wait() == 1);
      CAPTURE(j.log());
      CHECK(has(j.log(), why));
      CHECK(slurp(dir / "p/predictions.csv") == "earlier");
    }
}

TEST_CASE("a directory of results whose earlier files may be the data is refused, and the data stay") {
  job::scratch const dir;
  std::ofstream(dir / "predictions.csv") << "mine";
  std::filesystem::create_directory_symlink(".", dir / "link");
  for (char const* data : {"predictions.csv", "link/predictions.csv", "", "*.csv"}) {
    CAPTURE(data);
    edl::job j{.command = edl::command::predict};
    j.data.prediction_data = "nowhere," + (dir / data);
    j.outputs.prediction_outputs = dir / "link/";
    CHECK_THROWS_WITH_AS(edl::train::make_directories(j), doctest::Contains(" lies there, where files of "),
                         edl::usage_error);
  }
  edl::job apart{.command = edl::command::predict};
  apart.outputs.prediction_outputs = dir / "p";
  for (char const* data : {"predictions.csv", "people.csv", ""}) {
    apart.data.prediction_data = dir / data;
    CHECK_NOTHROW(edl::train::make_directories(apart));
  }
  CHECK(slurp(dir / "predictions.csv") == "mine");
}

TEST_CASE("a link is nobody's but the user's: where it would be removed or replaced, it is refused") {
  job::scratch const dir;
  for (char const* folder : {"data", "there"}) std::filesystem::create_directory(dir / folder);
  for (char const* file : {"data/mine.csv", "there/predictions.csv"}) std::ofstream(dir / file) << "mine";
  edl::job j{.command = edl::command::predict};
  j.outputs.prediction_outputs = dir / "there";
  j.data.prediction_data = dir / "data";
  auto const said = [&] { return complaint([&] { edl::train::make_directories(j); }); };
  CHECK(said().empty());
  std::filesystem::create_symlink(dir / "there/predictions.csv", dir / "data/linked.csv");
  for (char const* data : {"data", "data/*.csv", "data/linked.csv"}) {
    j.data.prediction_data = dir / data;
    CHECK(has(said(), " lies there, where files of "));
  }
  j.data.prediction_data = dir / "data/mine.csv";
  CHECK(said().empty());
  std::filesystem::create_symlink("../data/mine.csv", dir / "there/other.csv");
  CHECK(said().empty());
  j.data.prediction_data = dir / "there/part-1.csv";
  std::filesystem::create_symlink("../data/mine.csv", j.data.prediction_data);
  CHECK(has(said(), "it has a link part-1.csv, a name that is removed from there"));
  for (char const* name : {"1-is-2-said-3.png", "local.txt"})
    std::filesystem::create_symlink("../data/mine.csv", dir / "data" + ("/" + std::string(name)));
  edl::job const wrong{.command = edl::command::evaluate, .evaluation = {.wrong = dir / "data"}};
  edl::job const profile{.command = edl::command::evaluate, .compute = {.profile = dir / "data"}};
  for (edl::job const& one : {wrong, profile}) {
    CHECK(has(complaint([&] { edl::train::make_directories(one); }), "it has a link "));
  }
  CHECK(std::filesystem::is_symlink(dir / "there/part-1.csv"));
}

TEST_CASE("pictures of an earlier evaluation are removed, and other people's are not") {
  job::scratch const dir;
  for (char const* name : {"17-is-3-said-5.png", "mine-is-3-said-5.png", "-is-3-said-5.png", "17-is-3.png",
                           "wrong.jsonl", "part-00000.jsonl"})
    std::ofstream(dir / name) << "old";
  edl::job j{.command = edl::command::evaluate};
  j.evaluation.wrong = dir / "";
  edl::train::clean_outputs(j, false, edl::logger(edl::severity::critical));
  CHECK(names_in(dir / "") == lines{"-is-3-said-5.png", "17-is-3.png", "mine-is-3-said-5.png"});
}

TEST_CASE("two evaluations do not keep their wrong records in one directory") {
  job::scratch const dir;
  edl::job j{.command = edl::command::evaluate};
  edl::logger const log(edl::severity::critical);
  using part = edl::checkpoint::lock_options::part;
  CHECK_FALSE(edl::train::lock_outputs(j, part::whole, log));
  j.evaluation.wrong = dir / "";
  auto const first = edl::train::lock_outputs(j, part::whole, log);
  CHECK_THROWS_WITH_AS(edl::train::lock_outputs(j, part::whole, log), doctest::Contains("is in use by "),
                       edl::checkpoint::directory_taken);
}

TEST_CASE("profiles of an earlier run with more workers do not lie beside the new ones") {
  job::scratch const dir;
  std::filesystem::create_directories(dir / "p");
  for (char const* name : {"worker-0.txt", "worker-3.txt", "worker-3.json", "local.json", "worker-x.txt"})
    std::ofstream(dir / "p/" + name) << "old";
  CHECK(job::run(train(with({"--profile=" + dir / "p"}, several))).wait() == 0);
  CHECK(names_in(dir / "p") == lines{"worker-0.json", "worker-0.txt", "worker-x.txt"});
  CHECK(slurp(dir / "p/worker-0.txt") != "old");
}

TEST_CASE("the parts of the time are told by length, and add up") {
  using edl::worker::time_account;
  time_account spent(true);
  {
    time_account::scope const training(spent, time_account::training);
    time_account::scope const step(spent, time_account::step);
    time_account::scope const again(spent, time_account::training);
    for (auto const until = edl::clock::now() + 2ms; edl::clock::now() < until;) {
    }
  }
  spent.loss = 300us, spent.layers = spent.of(time_account::training) - 500us;
  spent.loading.reading = 2'000'000'000;
  std::istringstream told(edl::train::table_of(spent, edl::strategy::local, 2));
  lines all;
  for (std::string line; std::getline(told, line);) all.push_back(line);
  CAPTURE(all);
  REQUIRE(all.size() == 7);
  CHECK(all[0] == "part                                            seconds ms/minibatch   share");
  double before = 1e9, sum = 0;
  for (std::size_t i = 1; i < 5; ++i) {
    double const ms = std::stod(all[i].substr(55, 13));
    CHECK(ms <= before);
    before = ms, sum += ms;
    if (all[i].starts_with("training: loss ")) CHECK(ms == doctest::Approx(0.15));
    if (all[i].starts_with("training: all else ")) CHECK(ms == doctest::Approx(0.1));
  }
  CHECK(all[5].starts_with("all "));
  CHECK(all[5].ends_with("  100.0%"));
  CHECK(std::stod(all[5].substr(55, 13)) == doctest::Approx(sum).epsilon(0.001));
  CHECK(all[6] == "Records were read in 2.000 s and fed in 0.000 s, all threads together.");
  CHECK(has(told.str(), "\noptimiser  "));
  CHECK(has(edl::train::table_of(spent, edl::strategy::parameter_server, 0),
            "\npushing gradients to the servers "));
}

}  // namespace outputs_test
