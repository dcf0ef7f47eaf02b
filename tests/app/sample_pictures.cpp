// SPDX-License-Identifier: Apache-2.0
// --tensorboard_pictures of a network that takes pictures; the format of the files is looked at in
// tests/job/train/observe/event_file.cpp.
#include "edl/job/train/prediction/sample_pictures.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "app/job.hpp"

namespace sample_pictures_test {

TEST_CASE("the first records that are evaluated are in TensorBoard's files as pictures") {
  job::scratch const dir;
  job::run j({"train", "--training_data=synthetic:train", "--validation_data=synthetic:test", "--max_step=2",
              "--tensorboard_log_dir=" + (dir / "logs"), "--tensorboard_pictures=3"},
             {.program = EDL_MNIST});
  INFO(j.log());
  REQUIRE(j.wait() == 0);
  std::string all;
  for (auto const& one : std::filesystem::directory_iterator(dir / "logs"))
    all += job::slurp(one.path().string());
  for (char const* const tag : {"validation/record-0", "validation/record-1", "validation/record-2"})
    CHECK(job::has(all, tag));
  CHECK_FALSE(job::has(all, "validation/record-3"));
  std::size_t pictures = 0;
  for (std::size_t at = 0; (at = all.find("\x89PNG\r\n\x1a\n", at)) != all.npos; ++at) ++pictures;
  CHECK(pictures == 3);
}

}  // namespace sample_pictures_test
