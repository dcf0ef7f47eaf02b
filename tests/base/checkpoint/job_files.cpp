// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/job_files.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "edl/base/checkpoint/directory.hpp"
#include "edl/core/error.hpp"
#include "job/ps/small_store.hpp"

namespace job_files_test {

using namespace small_store;

namespace {

struct directory {
  scratch dir;
  edl::parameter_layout layout = small_layout();
  edl::checkpoint::job_files files{
      .layout = layout, .directory = dir / "c", .keep = 1, .described = {.job = "j", .seed = 7}};
  edl::logger log{edl::severity::critical};

  void write(std::uint64_t version) const {
    store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once});
    auto one = files.begin(version);
    one.contents.files = write_snapshot(s.full_snapshot(), one.path, layout, {});
    files.commit(one);
  }
};

}  // namespace

TEST_CASE("a checkpoint says which job and model it is of, and those that are too old go") {
  directory d;
  d.write(1);
  d.write(2);
  auto const written = edl::checkpoint::read_manifest(d.files.path(2));
  CHECK(written.job == "j");
  CHECK(written.version == 2);
  CHECK(written.layout == edl::checkpoint::layout_digest(d.layout));
  d.files.prune(d.log);
  CHECK(edl::checkpoint::newest_valid(d.files.directory) == d.files.path(2));
  CHECK_FALSE(std::filesystem::exists(d.files.path(1)));
}

TEST_CASE("who may not write any more completes nothing, and removes nothing") {
  directory d;
  d.write(1);
  d.write(2);
  d.files.allowed = [] { throw edl::error("another job has the directory"); };
  CHECK_THROWS_WITH(d.write(3), "another job has the directory");
  d.files.prune(d.log);
  CHECK(std::filesystem::exists(d.files.path(1)));
  CHECK(edl::checkpoint::newest_valid(d.files.directory) == d.files.path(2));
  std::vector<float> const values(d.layout.size());
  CHECK_THROWS_WITH(d.files.export_model(d.dir / "m", values, {}, 5, d.log), "another job has the directory");
}

TEST_CASE("a directory that cannot be made is an error of edl's, which is tried again") {
  directory d;
  std::ofstream(d.dir / "file") << "in the way";
  CHECK_THROWS_WITH_AS(d.files.export_model(d.dir / "file/model", {}, {}, 1, d.log),
                       doctest::Contains("cannot create directory"), edl::error);
  std::filesystem::remove(d.dir / "file");
  std::vector<float> const values(d.layout.size());
  d.files.export_model(d.dir / "file/model", values, {}, 1, d.log);
  CHECK(edl::checkpoint::model_version(d.dir / "file/model/model.safetensors") == 1);
}

TEST_CASE("a model says what it was trained with, wherever its directory is") {
  directory d;
  std::vector<float> const values(6, 1);
  d.files.export_model(d.dir / "new/model", values, {}, 5, d.log);
  std::string const path = d.dir / "new/model/model.safetensors";
  CHECK(edl::checkpoint::model_version(path) == 5);
  CHECK(edl::checkpoint::model_seed(path) == 7);
}

TEST_CASE("a job whose directory is another's begins no checkpoint") {
  scratch const dir;
  edl::parameter_layout const layout{{{"w", {1}, 0}}, 1, 0};
  edl::checkpoint::job_files const files{
      .layout = layout, .directory = dir / "all", .allowed = [] { throw edl::error("taken"); }};
  CHECK(contains(complaint([&] { files.begin(5); }), "taken"));
  CHECK_FALSE(std::filesystem::exists(dir / "all"));
}

}  // namespace job_files_test
