// SPDX-License-Identifier: Apache-2.0
#include "edl/app/history.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/job.hpp"
#include "edl/app/arguments.hpp"
#include "edl/core/error.hpp"
#include "text.hpp"

namespace history_test {

using edl::app::history, edl::app::history_from, edl::app::to_picture, edl::app::to_text;
using job::has, job::slurp;

namespace {

std::string const lines =
    R"({"step":100,"time":1764181474.5,"epoch":0,"records":6400,"loss":0.5,"learning_rate":0.01,"workers":2,"servers":0,"lost":0})"
    "\n"
    R"({"step":200,"time":1764181480,"evaluated":512,"metrics":{"accuracy":0.75,"loss":0.6}})"
    "\n"
    R"({"step":200,"time":1764181479,"epoch":0,"records":12800,"loss":0.25,"learning_rate":0.005,"workers":2,"servers":0,"lost":0})"
    "\n"
    R"({"step":300,"time":1764181490,"evaluated":512,"metrics":{"accuracy":null,"loss":0.5}})"
    "\n";

}  // namespace

TEST_CASE("a table has a row for each step, and no column that says nothing") {
  history const h = history_from(lines, "mnist");
  REQUIRE(h.rows.size() == 3);
  std::string const table = to_text(h, "table");
  CAPTURE(table);
  CHECK(has(table, "STEP"));
  CHECK(has(table, "VALIDATION LOSS"));
  CHECK(has(table, "2025-11-26 18:24:34"));
  CHECK_FALSE(has(table, "SERVERS"));
  CHECK_FALSE(has(table, "LOST"));
  CHECK(job::count(table, "\n") == 4);
}

TEST_CASE("the numbers of a column are written alike") {
  auto const column = [](std::string const& values) {
    std::string text;
    std::istringstream in(values);
    int step = 0;
    for (std::string v; in >> v;) text += "{\"step\":" + std::to_string(++step) + ",\"x\":" + v + "}\n";
    std::istringstream table(to_text(history_from(text, "m"), "table"));
    std::string cells, line, number;
    for (std::getline(table, line); table >> step >> number;) cells += (cells.empty() ? "" : " ") + number;
    return cells;
  };
  CHECK(column("1 200000 3e6") == "1 200000 3000000");
  CHECK(column("24345.7 8563.25 9000") == "24346 8563 9000");
  CHECK(column("1 0.98341 null 0") == "1.0000 0.9834 - 0.0000");
  CHECK(column("0.001 0.0005") == "0.0010 0.0005");
  CHECK(column("2.3026 0.00043217") == "2.3026000 0.0004322");
  CHECK(column("2.5 1e38 1") == "2.500e+00 1.000e+38 1.000e+00");
  CHECK(column("1e38 2e38") == "1.000e+38 2.000e+38");
  CHECK(column("0 0") == "0 0");
  CHECK(column("0 -2.5 1e-12") == "0.000e+00 -2.500e+00 1.000e-12");
}

TEST_CASE("CSV has all columns, JSON the lines as they are") {
  history const h = history_from(lines, "mnist");
  CHECK(to_text(h, "csv") ==
        "step,time,epoch,records,loss,learning_rate,workers,servers,lost,evaluated,metrics.accuracy,metrics."
        "loss\n"
        "100,1764181474.5,0,6400,0.5,0.01,2,0,0,,,\n"
        "200,1764181480,0,12800,0.25,0.005,2,0,0,512,0.75,0.6\n"
        "300,1764181490,,,,,,,,512,,0.5\n");
  std::string const json = to_text(h, "json");
  CHECK(json.starts_with("[{\"step\":100,"));
  CHECK(json.ends_with("\"loss\":0.5}}]\n"));
  CHECK(job::count(json, "\"step\"") == 4);
  CHECK(to_text(history_from("\xef\xbb\xbf" + std::string(lines), "mnist"), "json") == json);
}

TEST_CASE("names from a file are printable, and its values have a bound") {
  CHECK(to_text(history_from("{\"step\":1,\"\\u001b[31m\":2}", "m"), "csv") == "step, [31m\n1,2\n");
  std::string text = "{\"step\":0";
  for (int i = 0; i < 1000; ++i) text += ",\"c" + std::to_string(i) + "\":1";
  text += "}\n";
  history const wide = history_from(text + "{\"step\":1,\"c1000\":1,\"metrics\":{\"m\":1}}\n", "m");
  CHECK(wide.columns.size() == 1000);
  CHECK(wide.notes == std::vector<std::string>{"2 values of further columns are left out: at most 1000 fit"});
  for (int i = 1; i < 40'000; ++i) text += "{\"step\":" + std::to_string(i) + ",\"c999\":1}\n";
  CHECK_THROWS_WITH_AS(history_from(text, "m"), "a history has at most 33554432 values", edl::error);
}

TEST_CASE("a picture has the losses in one panel, and each metric in its own") {
  history const mnist = history_from(lines, "mnist"),
                none = history_from("{\"step\":1,\"epoch\":0}", "mnist");
  std::string const svg = to_picture({&mnist, 1});
  CHECK(has(svg, "mnist"));
  for (char const* name : {">loss<", ">training, mean<", ">validation<", ">accuracy, validation<",
                           ">learning rate<", ">workers, number<", ">step<"})
    CHECK(job::count(svg, name) == 1);
  job::scratch const dir;
  std::filesystem::create_symlink("nowhere", dir / "link.svg");
  for (auto const& [file, why] : {std::pair{".", "--plot=.: that is a directory; name a file in it"},
                                  {"link.svg", "link.svg: that is a link, which the picture would"}})
    CHECK(has(
        complaint([&, at = *file == '.' ? file : dir / file] { edl::app::show({&mnist, 1}, "table", at); }),
        why));
  CHECK_THROWS_WITH_AS(to_picture({&none, 1}),
                       "the history of mnist has nothing to draw: no loss, no metric, no speed", edl::error);
}

TEST_CASE("several trainings are lines of one picture, by their directories, and may be smoothed") {
  job::scratch const dir;
  for (char const* const one : {"a", "b"}) {
    std::filesystem::create_directory(dir / one);
    std::ofstream(dir / one + "/history.jsonl") << lines;
  }
  std::string const a = dir / "a", b = dir / "b", file = dir / "both.svg";
  edl::app::show({.paths = {a, b}, .format = "table", .picture = file});
  std::string const svg = job::slurp(file);
  for (std::string const& one : {a, b}) {
    for (char const* const line : {"training, mean", "validation", "workers"})
      CHECK(job::count(svg, ">" + one + ", " + line + "<") == 1);
    CHECK(job::count(svg, ">" + one + "<") >= 2);  // in panels of one line for each
  }
  CHECK(job::count(svg, ">accuracy, validation<") == 1);
  CHECK(has(complaint([&] { edl::app::show({.paths = {a, b}, .format = "table"}); }),
            "several histories are drawn into one picture: add --plot=FILE.svg"));
  std::vector<history> const two{history_from("{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":4}", "x")};
  std::vector<history> const mean{history_from("{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":3}", "x")};
  CHECK(to_picture(two, 0.5) == to_picture(mean));  // (1·0.25 + 4·0.5) / 0.75
  CHECK(to_picture(two) != to_picture(mean));
}

TEST_CASE("a directory without a history, a torn line and a foreign one are told") {
  job::scratch const dir;
  CHECK_THROWS_WITH_AS(edl::app::read_history(dir / "c"),
                       (dir / "c has no history.jsonl: give the --checkpoint_dir of a job that has trained; "
                              "a job without --checkpoint_dir keeps no history")
                           .c_str(),
                       edl::error);
  std::filesystem::create_directory(dir / "c");
  std::ofstream(dir / "c/history.jsonl") << "[1]\n" << lines << R"({"step":400,"lo)";
  history const h = edl::app::read_history(dir / "c");
  CHECK(h.rows.size() == 3);
  CHECK(h.job == "c");
  REQUIRE(h.notes.size() == 1);
  CHECK(has(h.notes[0], "history.jsonl: 2 lines of no history are left out, the first is line 1"));
  CHECK(edl::app::read_history(dir / "c/history.jsonl").rows.size() == 3);
  std::ofstream(dir / "c/history.jsonl") << "\n";
  CHECK_THROWS_AS(edl::app::read_history(dir / "c"), edl::error);
}

TEST_CASE("the command takes a directory or none, a form and a picture") {
  auto const asked = [](std::vector<std::string> line) {
    return edl::app::parse("mnist", line).run->history.value();
  };
  using paths = std::vector<std::string>;
  CHECK(asked({"history"}).paths == paths{"."});
  CHECK(asked({"history", "c"}).paths == paths{"c"});
  CHECK(asked({"history", "a", "b", "--plot=x.svg", "--smooth=0.9"}).paths == paths{"a", "b"});
  CHECK(asked({"history", "a", "b", "--plot=x.svg", "--smooth=0.9"}).smooth == 0.9);
  CHECK(asked({"history", "c"}).format == "table");
  CHECK(asked({"history", "c", "-o", "csv"}).format == "csv");
  CHECK(asked({"history", "--plot=curve.svg"}).picture == "curve.svg");
  CHECK_THROWS_AS(asked({"history", "a", "b", "c", "d", "e", "f"}), edl::usage_error);
  CHECK_THROWS_AS(asked({"history", "a", "--smooth=0.9"}), edl::usage_error);
  CHECK_THROWS_AS(asked({"history", "a", "--plot=x.svg", "--smooth=1"}), edl::usage_error);
  CHECK_THROWS_AS(asked({"history", "-o", "xml"}), edl::usage_error);
}

TEST_CASE("results are for people, or JSON on standard output alone") {
  auto const how = [](std::vector<std::string> line) {
    auto const p = edl::app::parse("mnist", line);
    return p.run->sweep ? p.run->sweep->format : p.run->job.evaluation.format;
  };
  std::vector<std::string> evaluate{"evaluate", "--validation_data=v", "--checkpoint_dir_for_init=c"};
  CHECK(how(evaluate) == edl::result_format::text);
  evaluate.push_back("--output_format=json");
  CHECK(how(evaluate) == edl::result_format::json);
  CHECK_THROWS_AS(how({"train", "--training_data=d", "-o", "json"}), edl::usage_error);
  CHECK(how({"sweep", "--training_data=d", "--validation_data=v", "--output=o", "--by=loss",
             "--grid=rate=1,2", "--max_step=8", "-o", "json"}) == edl::result_format::json);
}

// The whole way: a job writes it, is killed, goes on, and its history is that of a job that was never killed.
TEST_CASE("a file that is too long for a history is not read") {
  job::scratch const dir;
  std::string const file = dir / "history.jsonl";
  std::ofstream(file).close();
  std::filesystem::resize_file(file, (256u << 20) + 1);
  CHECK_THROWS_WITH_AS(edl::app::read_history(dir / ""),
                       doctest::Contains("has 268435457 bytes, which is too large: 268435456 at most"),
                       edl::error);
}

TEST_CASE("a history goes on after a kill without a gap or a step twice") {
  job::scratch const dir;
  auto const flags = [&](std::string const& name) {
    return job::train({"--validation_data=" + job::data().validation, "--num_epochs=3",
                       "--evaluation_steps=48", "--checkpoint_steps=24", "--history_steps=10",
                       "--checkpoint_dir=" + dir / name});
  };
  // What is the same however fast the machine is.
  auto const facts = [&](std::string const& name) {
    std::string all;
    history const h = edl::app::read_history(dir / name);
    for (auto const& row : h.rows) {
      all += std::to_string(row.step);
      for (std::size_t c = 0; c < h.columns.size(); ++c)
        if (h.columns[c].starts_with("metrics.") || h.columns[c] == "learning_rate" ||
            h.columns[c] == "evaluated")
          if (c < row.values.size()) all += " " + std::to_string(row.values[c]);
      all += "\n";
    }
    return all;
  };
  CHECK(job::run(flags("whole")).wait() == 0);
  {
    job::run j(flags("killed"), {.env = {{"TINY_DELAY_US", "100"}}});
    REQUIRE(j.says("Evaluation metrics[v=96]"));
    ::kill(j.pid(), SIGKILL);
    CHECK(j.wait() == 128 + SIGKILL);
  }
  // As a kill on another machine may leave it: steps after the checkpoint, and half a line.
  std::ofstream(dir / "killed/history.jsonl", std::ios::app) << "{\"step\":190,\"loss\":7}\n{\"step\":19";
  job::run j(flags("killed"));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "history.jsonl: dropping its truncated last line"));
  CHECK(has(j.log(), "the job goes on from there"));
  CHECK(facts("killed") == facts("whole"));
  std::string steps;
  history const whole = edl::app::read_history(dir / "whole");
  for (auto const& row : whole.rows) steps += std::to_string(row.step) + " ";
  CHECK(steps == "10 20 30 40 48 50 60 70 80 90 96 100 110 120 130 140 144 150 160 170 180 190 192 ");
  CHECK(whole.job == "tiny");
  // Nothing is left to do, and nothing to write.
  std::string const before = slurp(dir / "killed/history.jsonl");
  CHECK(job::run(flags("killed")).wait() == 0);
  CHECK(slurp(dir / "killed/history.jsonl") == before);
  job::run evaluate({"evaluate", "--validation_data=" + job::data().validation,
                     "--checkpoint_dir_for_init=" + dir / "killed", "-o", "json"});
  CHECK(evaluate.wait() == 0);
  CHECK(has(evaluate.log(), "{\"version\":192,\"records\":512,\"metrics\":{\"accuracy\":0."));
  job::run plot({"history", dir / "killed", "--plot=" + dir / "curve.svg"});
  CHECK(plot.wait() == 0);
  CHECK(has(slurp(dir / "curve.svg"), ">accuracy, validation<"));
  job::run both({"history", dir / "killed", "--plot=" + dir / "both.svg", "-o", "csv"});
  CHECK(both.wait() == 1);
  CHECK(has(both.log(), "both.svg draws instead of printing csv: run the command once for each"));
  job::run png({"history", dir / "killed", "--plot=" + dir / "curve.png"});
  CHECK(png.wait() == 1);
  CHECK(has(png.log(), "curve.png: the picture is SVG: give a name that ends in .svg"));
}

TEST_CASE("a job whose history cannot be written trains all the same, and says so once") {
  job::scratch const dir;
  std::filesystem::create_directories(dir / "c/history.jsonl");
  job::run j(job::train({"--history_steps=1", "--checkpoint_dir=" + dir / "c"}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(job::count(j.log(), "cannot write the job's history for now") == 1);
  CHECK(job::count(j.log(), "history.jsonl lacks 64 lines") == 1);
}

TEST_CASE("a master writes the history of servers' jobs and of all-reduce, with all losses") {
  job::scratch const dir;
  for (std::vector<std::string> const& how :
       {std::vector<std::string>{"--num_ps_pods=1", "--num_workers=2", "--use_async"},
        {"--num_workers=2", "--distribution_strategy=AllreduceStrategy"}}) {
    std::string const name = how.size() == 3 ? "ps" : "sums";
    std::vector<std::string> line{"--validation_data=" + job::data().validation, "--num_epochs=2",
                                  "--evaluation_steps=20", "--history_steps=10",
                                  "--checkpoint_dir=" + dir / name};
    line.insert(line.end(), how.begin(), how.end());
    job::run j(job::train(line));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    history const h = edl::app::read_history(dir / name);
    std::string const csv = to_text(h, "csv");
    CAPTURE(csv);
    REQUIRE_FALSE(h.rows.empty());
    CHECK(h.columns.size() == 14);
    auto const at = [&](std::string const& column) {
      auto const c = std::size_t(std::ranges::find(h.columns, column) - h.columns.begin());
      return c < h.rows.back().values.size() ? h.rows.back().values[c] : -1;
    };
    CHECK(at("records") == 2 * 2048);
    CHECK(at("loss") > 0);
    CHECK(at("loss") < 1.2);
    CHECK(at("metrics.accuracy") > 0.5);
    CHECK(at("lost") == 0);
  }
}

}  // namespace history_test
