// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace edl::nn {

/// How the rows of a sample's ids are combined: their sum Σ w·e, the mean Σ w·e / Σ w, or Σ w·e / √Σ w² (as
/// TensorFlow's combiners of sparse ids and weights).
enum class combiner { sum, mean, sqrtn };

/// The divisor of a sample's weights, after all of them have been added.
template <class T>
class weight_norm {
 public:
  explicit weight_norm(combiner how) : combiner_(how) {}

  void add(T weight) { sum_ += combiner_ == combiner::sqrtn ? weight * weight : weight; }

  /// The factor for the sum; 0 if the weights sum to 0.
  T reciprocal() const {
    if (combiner_ == combiner::sum) return T(1);
    T const norm = combiner_ == combiner::sqrtn ? std::sqrt(sum_) : sum_;
    return norm == T(0) ? T(0) : T(1) / norm;
  }

 private:
  combiner combiner_;
  T sum_ = 0;
};

}  // namespace edl::nn
