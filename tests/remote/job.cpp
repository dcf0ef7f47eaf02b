// SPDX-License-Identifier: Apache-2.0
// Whole jobs of the example's program, whose records lie on a web server.
#include "app/job.hpp"

#include <map>
#include <string>

#include "remote/web_server.hpp"

namespace job_test {

using namespace std::chrono_literals;
using job::has;

namespace {

/// The files of a directory that the program's `data` writes, and a list of their URLs.
struct files {
  std::map<std::string, std::string> all;

  std::string list(web::server const& s) const {
    std::string urls;
    for (auto const& [path, bytes] : all) urls += (urls.empty() ? "" : ",") + s.url(path);
    return urls;
  }
};

files drawn(job::scratch const& dir) {
  job::run data({"data", "--from=synthetic:test", "--fraction=0.2", "--to=" + dir / "drawn",
                 "--records_per_shard=512", "--compressor=none"});
  REQUIRE(data.wait(300s) == 0);
  files f;
  for (auto const& entry : std::filesystem::directory_iterator(dir / "drawn"))
    f.all["/" + entry.path().filename().string()] = job::slurp(entry.path());
  REQUIRE(f.all.size() == 4);
  return f;
}

}  // namespace

TEST_CASE("jobs of every strategy count each record of a web server once, though it is not always kind") {
  job::scratch const dir;
  files const f = drawn(dir);
  web::server const s([&](web::request const& r) -> web::reply {
    auto const right = web::part(f.all.at(r.path), r);
    if (r.number % 7 == 3) return {web::head("503 Service Unavailable", 0)};
    if (r.number % 11 == 5) return {right.substr(0, right.size() / 2), web::then::close};
    return {right};
  });
  for (std::vector<std::string> const& strategy :
       {std::vector<std::string>{},
        {"--num_workers=2", "--num_ps_pods=1"},
        {"--num_workers=2", "--distribution_strategy=AllreduceStrategy"}}) {
    job::scratch const own;
    std::vector<std::string> line{"train", "--training_data=" + f.list(s), "--validation_split=0.1",
                                  "--num_epochs=2", "--checkpoint_dir=" + own / "c"};
    line.insert(line.end(), strategy.begin(), strategy.end());
    job::run trained(line);
    CHECK(trained.wait(300s) == 0);
    CAPTURE(trained.log());
    for (std::string const epoch : {"0", "1"})
      CHECK(has(trained.log(), "Epoch " + epoch +
                                   ": 1800 records in the data set, 1800 counted once, 0 skipped as "
                                   "damaged, 0 left"));
    job::run audit({"audit", own / "c"});
    CHECK(audit.wait(60s) == 0);
  }
  CHECK(s.requests() > 11);
}

TEST_CASE("a job goes on from its checkpoint, and not on files that are others") {
  job::scratch const dir;
  files f = drawn(dir);
  std::vector<std::string> line{"train", "", "--num_epochs=1", "--checkpoint_dir=" + dir / "c"};
  {
    web::server const s(f.all);
    line[1] = "--training_data=" + f.list(s);
    CHECK(job::run(line).wait(300s) == 0);
  }
  // Another server, and so another port: the shards are the same ones.
  {
    web::server const s(f.all);
    line[1] = "--training_data=" + f.list(s);
    line[2] = "--num_epochs=2";
    job::run more(line);
    CHECK(more.wait(300s) == 0);
    CHECK(has(more.log(), "going on from "));
  }
  std::swap(f.all.at("/data-00000"), f.all.at("/data-00001"));
  web::server const s(f.all);
  line[1] = "--training_data=" + f.list(s);
  line[2] = "--num_epochs=3";
  job::run other(line);
  CHECK(other.wait(300s) == 1);
  CHECK(has(other.log(), "shard data-00000 of --training_data="));
}

TEST_CASE("a job ends with one line that names the file where there is none") {
  web::server const s(std::map<std::string, std::string>{});
  job::run nothing({"train", "--training_data=" + s.url("/data-00000")});
  CHECK(nothing.wait(60s) == 1);
  CHECK(has(nothing.log(), s.url("/data-00000") + ": byte 0: the server answers 404"));
}

}  // namespace job_test
