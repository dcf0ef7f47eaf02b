// SPDX-License-Identifier: Apache-2.0
// Wide & deep (Cheng et al., 2016) on the census data of UCI: does a person earn more than 50,000 dollars a
// year?
#include <array>
#include <cmath>
#include <edl/edl.hpp>
#include <string_view>

namespace nn = edl::nn;

struct census {
  static constexpr int buckets = 100, crossed_buckets = 2'000;  // of one field
  static constexpr std::array<char const*, 8> fields{"workclass",  "education",     "marital_status",
                                                     "occupation", "relationship",  "race",
                                                     "sex",        "native_country"};

  static constexpr auto in =
      nn::inputs(nn::input<"numbers">(nn::features{.count = 5}), nn::input<"categories">(nn::ids{.count = 8}),
                 nn::input<"crosses">(nn::ids{.count = 3}));

  /// One weight for each category, and for each pair of categories that says more than both.
  static constexpr auto wide =
      nn::sum(in.from<"categories">(nn::embedding_bag{.vocabulary = 8 * buckets, .width = 1}),
              in.from<"crosses">(nn::embedding_bag{.vocabulary = 3 * crossed_buckets, .width = 1}));

  /// A perceptron over the numbers and a short vector for each category.
  static constexpr auto deep = nn::sequential(
      nn::concat(in.from<"numbers">(),
                 in.from<"categories">(nn::embedding{.vocabulary = 8 * buckets, .width = 8}, nn::flatten{})),
      nn::dense{.units = 64}, nn::relu{}, nn::dense{.units = 32}, nn::relu{}, nn::dense{.units = 1});

  static constexpr auto network = nn::sequential(in, nn::sum(wide, deep));
  static constexpr nn::sigmoid_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 1e-3};
  using metrics = edl::metrics<edl::accuracy, edl::auc>;

  /// FNV-1a; a second text goes on where the first ended.
  static std::uint64_t hash(std::string_view text, std::uint64_t from = 0xcbf29ce484222325) {
    for (char const c : text) from = (from ^ std::uint8_t(c)) * 0x100000001b3;
    return from;
  }

  static void feed(edl::example const& record, edl::sample<census>& into, edl::mode m) {
    auto numbers = into.input<"numbers">();
    numbers(0) = (record.floating("age") - 39) / 14;
    numbers(1) = (record.floating("education_num") - 10) / 2.6f;
    numbers(2) = std::log1p(record.floating("capital_gain")) / 3;
    numbers(3) = std::log1p(record.floating("capital_loss")) / 3;
    numbers(4) = (record.floating("hours_per_week") - 40) / 12;

    auto categories = into.input<"categories">();
    for (std::size_t i = 0; i < fields.size(); ++i)
      categories(i) = float(i * buckets + hash(record.bytes(fields[i])) % buckets);

    std::uint64_t const occupation = hash(record.bytes("occupation"));
    std::array<std::uint64_t, 3> const pairs{hash(record.bytes("education"), occupation),
                                             hash(record.bytes("marital_status"), occupation),
                                             occupation + std::uint64_t(record.floating("age") / 5)};
    auto crosses = into.input<"crosses">();
    for (std::size_t i = 0; i < pairs.size(); ++i)
      crosses(i) = float(i * crossed_buckets + pairs[i] % crossed_buckets);

    if (m != edl::mode::prediction) into.label = record.bytes("label") == ">50K";
  }
};

int main(int argc, char** argv) { return edl::run<census>(argc, argv); }
