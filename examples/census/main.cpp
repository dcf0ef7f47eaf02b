// SPDX-License-Identifier: Apache-2.0
// Wide & deep (Cheng et al., 2016) on the census data of UCI: does a person earn more than 50,000 dollars a
// year?
#include <array>
#include <cmath>
#include <edl/edl.hpp>
#include <string>
#include <string_view>

namespace nn = edl::nn;

struct census {
  static constexpr edl::features::normalization age{.subtract = 39, .divide = 14};
  static constexpr edl::features::normalization education{.subtract = 10, .divide = 2.6f};
  static constexpr edl::features::normalization gains{.divide = 3};  // of a logarithm
  static constexpr edl::features::normalization hours{.subtract = 40, .divide = 12};
  static constexpr edl::features::round_identity age_group{.most = 20};

  static constexpr int count = 8;
  static constexpr std::array<char const*, count> fields{"workclass",  "education",     "marital_status",
                                                         "occupation", "relationship",  "race",
                                                         "sex",        "native_country"};
  static constexpr edl::features::hashing field{.buckets = 100};
  static constexpr edl::features::id_ranges<count> categories{field};
  static constexpr edl::features::crossing pair{.buckets = 2'000};
  static constexpr edl::features::id_ranges<3> crosses{pair};

  static constexpr auto in =
      nn::inputs(nn::input<"numbers">(nn::features{.count = 5}),
                 nn::input<"categories">(nn::ids{.count = count}), nn::input<"crosses">(nn::ids{.count = 3}));

  /// One weight for each category, and for each pair of categories that says more than both.
  static constexpr auto wide =
      nn::sum(in.from<"categories">(nn::embedding_bag{.vocabulary = categories.size(), .width = 1}),
              in.from<"crosses">(nn::embedding_bag{.vocabulary = crosses.size(), .width = 1}));

  /// A perceptron over the numbers and a short vector for each category.
  static constexpr auto deep = nn::sequential(
      nn::concat(
          in.from<"numbers">(),
          in.from<"categories">(nn::embedding{.vocabulary = categories.size(), .width = 8}, nn::flatten{})),
      nn::dense{.units = 64}, nn::relu{}, nn::dense{.units = 32}, nn::relu{}, nn::dense{.units = 1});

  static constexpr auto network = nn::sequential(in, nn::sum(wide, deep));
  static constexpr nn::sigmoid_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 1e-3};
  using metrics = edl::metrics<edl::accuracy, edl::auc>;

  static void feed(edl::example const& record, edl::sample<census>& into, edl::mode m) {
    auto numbers = into.input<"numbers">();
    numbers(0) = age(record.floating("age"));
    numbers(1) = education(record.floating("education_num"));
    numbers(2) = gains(std::log1p(record.floating("capital_gain")));
    numbers(3) = gains(std::log1p(record.floating("capital_loss")));
    numbers(4) = hours(record.floating("hours_per_week"));

    auto ids = into.input<"categories">();
    for (std::size_t i = 0; i < fields.size(); ++i)
      ids(i) = float(categories(i, field(record.bytes(fields[i]))));

    std::string_view const job = record.bytes("occupation");
    std::string const years = std::to_string(age_group(record.floating("age") / 5));
    auto pairs = into.input<"crosses">();
    pairs(0) = float(crosses(0, pair({record.bytes("education"), job})));
    pairs(1) = float(crosses(1, pair({record.bytes("marital_status"), job})));
    pairs(2) = float(crosses(2, pair({years, job})));

    if (m != edl::mode::prediction) into.label = record.bytes("label") == ">50K";
  }
};

int main(int argc, char** argv) { return edl::run<census>(argc, argv); }
