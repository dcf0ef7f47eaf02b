// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace edl::nn {

/// How the rows of a sample's ids become one. It is their sum Σ w·e, the mean Σ w·e / Σ w, or Σ w·e / √Σ w²
/// (as TensorFlow's combiners of sparse ids and weights).
enum class combiner { sum, mean, sqrtn };

/// What the weights of a sample are divided by, once all of them have been added.
template <class T>
class weight_norm {
 public:
  explicit weight_norm(combiner how) : combiner_(how) {}

  void add(T weight) { sum_ += combiner_ == combiner::sqrtn ? weight * weight : weight; }

  /// To be multiplied by; 0 where the weights sum to 0.
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
