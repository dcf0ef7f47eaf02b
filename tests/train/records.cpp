// SPDX-License-Identifier: Apache-2.0
#include "edl/train/records.hpp"

#include "app/job.hpp"
#include "train/files.hpp"

using job::lines_in, job::model;

TEST_CASE("records without labels are predicted") {
  job::scratch const dir;
  job::write_shard(dir / "data/part-0", 100, 5, [](std::uint64_t, edl::example& e) {
    auto const x = e.float_values("x");
    std::vector<float> const copy(x.begin(), x.end());
    edl::example_builder(e).floats("x", copy);
  });
  job::run j({"predict", "--prediction_data=" + dir / "data", "--prediction_outputs=" + dir / "p",
              "--checkpoint_dir_for_init=" + model().output});
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(lines_in(dir / "p") == 100);
}
