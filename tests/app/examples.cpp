// SPDX-License-Identifier: Apache-2.0
// The examples train: short runs that must reach a mark far below that of the whole recipe.
#include <cmath>
#include <set>
#include <string>

#include "app/job.hpp"
#include "edl/compute/device/cpu/options.hpp"

namespace examples_test {

using job::has, job::slurp;
using namespace std::chrono_literals;

namespace {

[[maybe_unused]] double last_accuracy(std::string const& log) {
  auto const at = log.rfind("{'accuracy': ");
  return at == std::string::npos ? 0 : std::stod(log.substr(at + 13));
}

/// CIFAR-10's files with pictures of noise around a colour of their class.
[[maybe_unused]] void write_colours(std::string const& path, std::uint64_t records, std::uint64_t seed) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream out(path, std::ios::binary);
  edl::random_stream const random(seed, 0);
  for (std::uint64_t i = 0; i < records; ++i) {
    auto const label = random.below(10, i);
    std::string record(1, char(label));
    for (std::uint64_t channel = 0; channel < 3; ++channel)
      for (std::uint64_t p = 0; p < 1024; ++p)
        record += char(20 * ((label * (channel + 3)) % 10) + random.bits((i * 3 + channel) * 1024 + p) % 60);
    out << record;
  }
}

/// The census's columns, where the label follows from two of them, but for every tenth record.
[[maybe_unused]] void write_people(std::string const& path, std::uint64_t records, std::uint64_t seed) {
  std::ofstream out(path);
  out << "age,workclass,education,education_num,marital_status,occupation,relationship,race,sex,capital_gain,"
         "capital_loss,hours_per_week,native_country,label\n";
  edl::random_stream const random(seed, 0);
  for (std::uint64_t i = 0; i < records; ++i) {
    auto const education = random.below(8, 3 * i), job = random.below(8, 3 * i + 1);
    bool const rich = (education + job > 7) != (random.below(10, 3 * i + 2) == 0);
    out << 20 + i % 50 << ",Private,School-" << education << "," << education + 5 << ",Divorced,Job-" << job
        << ",Unmarried,Other,Female,0,0,40,Peru," << (rich ? ">50K" : "<=50K") << "\n";
  }
}

/// The published files as the example's README makes CSV files of them; false where they are not there.
[[maybe_unused]] bool write_census(job::scratch const& dir) {
  char const* const data = std::getenv("EDL_TEST_DATA");
  std::string const from = std::string(data ? data : "") + "/census/adult.";
  if (!std::filesystem::exists(from + "data.xz")) return false;
  std::string const names =
      "age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex,capital_"
      "gain,"
      "capital_loss,hours_per_week,native_country,label";
  for (auto const& [part, to] : {std::pair("data", "train.csv"), std::pair("test", "test.csv")}) {
    std::string const command = "{ echo " + names + "; xz -dc '" + from + part +
                                ".xz' | sed '/,/!d; s/, /,/g; s/\\.$//'; } > '" + dir / to + "'";
    if (std::system(command.c_str()) != 0) return false;  // NOLINT: the README's own command
  }
  return true;
}

}  // namespace

#ifdef EDL_MNIST
TEST_CASE("the MNIST example learns digits, by itself and with servers") {
  job::scratch const dir;
  for (std::vector<std::string> const& processes :
       {std::vector<std::string>{}, {"--num_ps_pods=1", "--num_workers=1"}}) {
    std::vector<std::string> flags{"train", "--training_data=synthetic:train",
                                   "--validation_data=synthetic:test", "--max_step=80"};
    flags.insert(flags.end(), processes.begin(), processes.end());
    job::run j(flags, {.program = EDL_MNIST});
    CHECK(j.wait(600s) == 0);
    CAPTURE(j.log());
    CHECK(last_accuracy(j.log()) > 0.8);
  }
}

TEST_CASE("the MNIST example learns digits in bfloat16, with the same bits twice, and is evaluated so") {
  job::scratch const dir;
  // Where a processor has no such products, edl's own kernels round as much; they are slower.
  bool const fast = edl::multiplies(edl::precision::bfloat16);
  auto const model = [&](std::string const& name) {
    std::vector<std::string> flags{"train",
                                   "--training_data=synthetic:train",
                                   "--deterministic",
                                   "--precision=bfloat16",
                                   fast ? "--max_step=80" : "--max_step=20",
                                   "--output=" + dir / name};
    if (!fast) flags.push_back("--kernels=own");
    job::run j(flags, {.program = EDL_MNIST});
    CHECK(j.wait(600s) == 0);
    CHECK(has(j.log(), "the processor, bfloat16"));
    return slurp(dir / name + "/model.safetensors");
  };
  CHECK(model("first") == model("again"));
  std::set<double> whole_told;  // beside lower precisions
  auto const accuracy = [&](std::string const& precision) {
    job::run j({"evaluate", "--validation_data=synthetic:test", "--checkpoint_dir_for_init=" + dir / "first",
                "--precision=" + precision, fast ? "--kernels=fixed" : "--kernels=own"},
               {.program = EDL_MNIST});
    CHECK(j.wait(600s) == 0);
    CAPTURE(j.log());
    auto const told = j.log().rfind("'float32_accuracy': ");
    CHECK((told == std::string::npos) == (precision == "float32"));
    if (told != std::string::npos) whole_told.insert(std::stod(j.log().substr(told + 20)));
    return last_accuracy(j.log());
  };
  double const whole = accuracy("float32");
  CHECK(whole > (fast ? 0.8 : 0.3));
  CHECK(std::abs(accuracy("bfloat16") - whole) < 0.02);
  if (!fast || edl::multiplies(edl::precision::int8)) CHECK(std::abs(accuracy("int8") - whole) < 0.02);
  CHECK(whole_told == std::set<double>{whole});
}

TEST_CASE("the MNIST example predicts pictures without labels") {
  job::scratch const dir;
  job::run trained({"train", "--training_data=synthetic:test", "--max_step=1", "--num_minibatches_per_task=1",
                    "--output=" + dir / "model"},
                   {.program = EDL_MNIST});
  CHECK(trained.wait(600s) == 0);
  {
    edl::data::recordio_writer out(dir / "pictures");
    edl::example e;
    std::string bytes;
    for (int i = 0; i < 10; ++i) {
      edl::example_builder(e).floats("image", std::vector<float>(784, float(i)));
      edl::encode(e, bytes);
      out.write(bytes);
    }
    out.close();
  }
  job::run j({"predict", "--prediction_data=" + dir / "pictures", "--prediction_outputs=" + dir / "out",
              "--checkpoint_dir_for_init=" + dir / "model"},
             {.program = EDL_MNIST});
  CHECK(j.wait(600s) == 0);
  CAPTURE(j.log());
  CHECK(job::count(slurp(dir / "out/predictions.csv"), "\n") == 1 + 10);
}

TEST_CASE("kernels that were measured are remembered, and a deterministic run asks nobody") {
  job::scratch const dir;
  auto const model = [&](std::vector<std::string> more) {
    std::string const output = dir / more.back();
    std::vector<std::string> flags{"train", "--training_data=synthetic:train", "--max_step=5",
                                   "--output=" + output, "--kernel_cache=" + dir / "deep" + "/kernels"};
    flags.insert(flags.end(), more.begin(), more.end() - 1);
    job::run j(flags, {.program = EDL_MNIST});
    CHECK(j.wait(600s) == 0);
    return slurp(output + "/model.safetensors");
  };
  CHECK(model({"--deterministic", "a"}) == model({"--deterministic", "b"}));
  CHECK_FALSE(std::filesystem::exists(dir / "deep"));
  std::string const first = model({"c"}), remembered = slurp(dir / "deep" + "/kernels");
  CHECK(remembered.starts_with("edl "));
  CHECK(model({"d"}) == first);
  CHECK(slurp(dir / "deep" + "/kernels") == remembered);
  CHECK(model({"--activations=float32", "e"}) == first);
  CHECK(model({"--activations=bfloat16", "f"}) != first);
  CHECK(model({"--kernels=own", "g"}) != first);
}
#endif

#ifdef EDL_CIFAR10
TEST_CASE("the CIFAR-10 example learns colours") {
  job::scratch const dir;
  write_colours(dir / "cifar/data_batch_1.bin", 2560, 1);
  write_colours(dir / "cifar/test_batch.bin", 256, 2);
  job::run j({"train", "--training_data=" + dir / "cifar/train", "--validation_data=" + dir / "cifar/test",
              "--num_epochs=2", "--profile=" + dir / "profile"},
             {.program = EDL_CIFAR10});
  CHECK(j.wait(600s) == 0);
  CAPTURE(j.log());
  CHECK(last_accuracy(j.log()) > 0.5);
  CHECK(has(slurp(dir / "profile/local.txt"), "conv2d "));
}
#endif

#ifdef EDL_CENSUS
TEST_CASE("the census example learns what two categories say together") {
  job::scratch const dir;
  write_people(dir / "train.csv", 8000, 1);
  write_people(dir / "test.csv", 1000, 2);
  job::run j({"train", "--training_data=" + dir / "train.csv", "--validation_data=" + dir / "test.csv",
              "--num_epochs=2"},
             {.program = EDL_CENSUS});
  CHECK(j.wait(600s) == 0);
  CAPTURE(j.log());
  CHECK(last_accuracy(j.log()) > 0.85);  // 0.9 is the best that there is
}

TEST_CASE("the census example is as good on the published data as wide and deep is, with every strategy") {
  job::scratch const dir;
  if (!write_census(dir)) {
    MESSAGE("skipped: the census data is not there");
    return;
  }
  for (std::vector<std::string> const& processes :
       {std::vector<std::string>{},
        {"--num_ps_pods=1", "--num_workers=2"},
        {"--distribution_strategy=AllreduceStrategy", "--num_workers=2"}}) {
    std::vector<std::string> flags{"train",          "--training_data=" + dir / "train.csv",
                                   "--num_epochs=4", "--validation_data=" + dir / "test.csv",
                                   "--seed=1",       "--minibatch_size=64"};
    flags.insert(flags.end(), processes.begin(), processes.end());
    job::run j(flags, {.program = EDL_CENSUS});
    CHECK(j.wait(600s) == 0);
    CAPTURE(j.log());
    CHECK(last_accuracy(j.log()) >= 0.85);
    auto const at = j.log().rfind("'auc': ");
    REQUIRE(at != std::string::npos);
    CHECK(std::stod(j.log().substr(at + 7)) >= 0.905);
  }
}
#endif

}  // namespace examples_test
