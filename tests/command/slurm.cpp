// SPDX-License-Identifier: Apache-2.0
// What Slurm makes of the script is the matter of tests/slurm.sh.
#include "submit/slurm.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "edl/core/error.hpp"
#include "scratch_directory.hpp"
#include "text.hpp"

namespace slurm_test {

using edl::tool::words;

namespace {

words line(words flags, words program = {}) {
  words all = std::move(flags);
  all.insert(all.end(), {"--", "./mnist", "train", "--training_data=/data/it's", "--num_workers=3",
                         "--checkpoint_dir=/data/ck"});
  all.insert(all.end(), program.begin(), program.end());
  return all;
}

std::string said(words const& l) {
  return refusal([&] { edl::tool::slurm_script(l); });
}

}  // namespace

TEST_CASE("edl slurm: the master and its servers in one job, the workers in an array, the words as given") {
  std::string const script = edl::tool::slurm_script(line(
      {"--sbatch=--account=lab  --time=1:00:00", "--worker_sbatch=--partition=spot"}, {"--num_ps_pods=2"}));
  CAPTURE(script);
  for (char const* part :
       {"#SBATCH --job-name=mnist\n", "#SBATCH --ntasks=3\n",
        "#SBATCH --account=lab\n#SBATCH --time=1:00:00\n",
        "\nservers=2\nworkers=3\nworker_options=(--partition=spot)\n", R"('--training_data=/data/it'\''s')"})
    CHECK(contains(script, part));
  scratch const dir;
  std::ofstream(dir / "job.sh") << script;
  CHECK(std::system(("bash -n '" + dir / "job.sh" + "'").c_str()) == 0);
  CHECK(contains(
      edl::tool::slurm_script(line({}, {"--distribution_strategy=AllreduceStrategy", "--port=5000"})),
      "\nport=5000\nservers=0\n"));
}

TEST_CASE("edl slurm refuses what would not run, before anything waits in a queue") {
  CHECK(contains(said({}), "the program with its command line"));
  CHECK(contains(said({"--", "./mnist", "train", "--training_data=x"}), "--num_workers=N makes it several"));
  CHECK(contains(said({"--", "./mnist", "evaluate", "--validation_data=x", "--num_workers=2",
                       "--checkpoint_dir_for_init=m"}),
                 "for `train`"));
  CHECK(contains(said(line({}, {"--num_epoch=3"})), "num_epochs"));
  CHECK(contains(said(line({}, {"--job_name=a b"})), "--job_name=a b"));
  CHECK(contains(said(line({"--sbatch=-t 5"})), "'-t' is not a long option"));
  CHECK(contains(said(line({"--worker_sbatch=--array=0-3"})),
                 "--worker_sbatch: the script sets --array itself"));
}

}  // namespace slurm_test
