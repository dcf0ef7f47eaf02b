// SPDX-License-Identifier: Apache-2.0
// The page of examples/pictures, command by command, on pictures that are made here.
#include "compute/data/pictures.hpp"

#include <cmath>
#include <sstream>

#include "app/job.hpp"

namespace pictures_test {

using job::has, job::slurp;
using namespace std::chrono_literals;

namespace {

#ifdef EDL_PICTURES
/// A disc or a square of any colour, somewhere on a plain ground, of any size.
edl::data::pixels drawn(bool disc, std::uint64_t seed) {
  edl::random_stream const random(seed, 0);
  int const height = 30 + int(random.below(30, 0)), width = 30 + int(random.below(30, 1));
  double const radius = 6 + double(random.below(5, 2)), y0 = height / 2.0, x0 = width / 2.0;
  edl::data::pixels p{{height, width, 3}, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      double const dy = std::abs(y - y0), dx = std::abs(x - x0);
      bool const inside = disc ? dy * dy + dx * dx < radius * radius * 1.6 : dy < radius && dx < radius;
      for (std::uint64_t c = 0; c < 3; ++c)
        p.values.push_back(std::uint8_t(inside ? 150 + random.below(100, 3 + c) : random.below(100, 6 + c)));
    }
  return p;
}

void put(std::string const& path, std::string const& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

/// The commands of the page's section that looks, trains, evaluates and predicts.
std::vector<std::string> commands() {
  std::string page = slurp(EDL_PAGE);
  auto const begin = page.find("\n## Look, "), end = page.find("\n## More");
  REQUIRE(begin != page.npos);
  REQUIRE(end != page.npos);
  page = page.substr(begin, end - begin);
  std::vector<std::string> all;
  for (std::size_t at = 0; (at = page.find("```sh\n", at)) != page.npos;) {
    at += 6;
    all.push_back(page.substr(at, page.find("```", at) - at));
    at += all.back().size() + 3;
  }
  return all;
}

struct desk {
  job::scratch dir;

  desk() {
    std::filesystem::create_directory(dir / "bin");
    std::filesystem::create_symlink(EDL_TOOL, dir / "bin/edl");
    std::filesystem::create_symlink(EDL_PICTURES, dir / "bin/pictures");
    for (std::uint64_t i = 0; i < 200; ++i) {
      bool const disc = i % 2 == 0;
      std::string const name = (disc ? "daisy/" : "rose/") + std::to_string(i);
      auto const picture = drawn(disc, i);
      put(dir / ("flowers/" + name + (i % 3 == 0 ? ".jpg" : ".png")),
          i % 3 == 0 ? support::encode_jpeg(picture) : edl::data::encode_png(picture));
      if (i < 40) put(dir / ("more/" + name + ".webp"), support::encode_webp(drawn(disc, 1000 + i)));
      if (i < 10)
        put(dir / ("unknown/" + std::to_string(i) + ".png"), edl::data::encode_png(drawn(disc, 2000 + i)));
    }
  }

  std::string run(std::string const& command) const {
    job::run shell({"-ec", "PATH='" + dir / "bin" + "':$PATH\ncd '" + dir / "" + "'\n" + command},
                   {.program = "/bin/sh"});
    CHECK(shell.wait(300s) == 0);
    return shell.log();
  }
};
#endif

}  // namespace

#ifdef EDL_PICTURES
TEST_CASE("the page's commands go from a folder of pictures to a model that knows others") {
  desk const d;
  auto const all = commands();
  REQUIRE(all.size() == 4);
  std::vector<std::string> said;
  for (std::string const& command : all) said.push_back(d.run(command));
  CAPTURE(said[0]);
  CHECK(has(said[0], "200 records in 1 shard, 200 of them read"));
  CHECK(has(said[0], "daisy"));
  CHECK(has(said[0],
            "sheet.png: 100 pictures, 10 in a row; by label: daisy from picture 1, rose from picture "));
  edl::data::pixels sheet;
  edl::data::decode_picture(slurp(d.dir / "sheet.png"), sheet);
  CHECK(sheet.extents == edl::shape{684, 684, 3});
  CAPTURE(said[1]);
  CHECK(has(said[1], "classes: 0 daisy, 1 rose"));
  CHECK(has(said[1], "20 of 200 records are held out for evaluation"));
  CHECK(
      has(said[1], "Epoch 19: 180 records in the data set, 180 counted once, 0 skipped as damaged, 0 left"));
  CAPTURE(said[2]);
  auto const at = said[2].rfind("'accuracy': ");
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(said[2].substr(at + 12)) >= 0.8);
  CAPTURE(said[3]);
  std::string const lines = slurp(d.dir / "predictions/predictions.csv");
  CHECK(std::ranges::count(lines, '\n') == 11);
  CHECK(lines.starts_with("record,class,probability,"));
  int right = 0;
  std::istringstream in(lines);
  std::string line;
  std::getline(in, line);
  for (int i = 0; std::getline(in, line); ++i)
    right += line.starts_with(std::to_string(i) + ',' + std::to_string(i % 2) + ',') ? 1 : 0;
  CHECK(right >= 8);
}

TEST_CASE("a damaged picture ends the job with its name, or is left out") {
  desk const d;
  put(d.dir / "flowers/rose/1.png", slurp(d.dir / "flowers/rose/1.png").substr(0, 100));
  std::string const train = "pictures train --training_data=flowers --num_epochs=1 --minibatch_size=16";
  CHECK(has(d.run(train + " || true"), "flowers/rose/1.png: a PNG file is damaged: the file ends too early"));
  CHECK(has(d.run(train + " --skip_damaged"),
            "200 records in the data set, 199 counted once, 1 skipped as damaged"));
  CHECK(has(d.run("edl data inspect flowers --verify 2>&1 || true"), "rose/1.png: a PNG file is damaged"));
}
#endif

}  // namespace pictures_test
