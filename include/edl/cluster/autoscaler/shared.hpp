// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace edl::autoscaler {

/// A constant value shared by its copies: thousands of pods have one shape. Used like a pointer. Several
/// threads may read and drop copies at once.
template <class T>
class shared {
 public:
  shared() : value_(nothing()) {}
  shared(T value) : value_(std::make_shared<T const>(std::move(value))) {}
  explicit shared(std::shared_ptr<T const> value) : value_(value ? std::move(value) : nothing()) {}

  /// Whether both share one value; different ones may still be equal.
  bool same(shared const& other) const { return value_ == other.value_; }

  T const& operator*() const { return *value_; }
  T const* operator->() const { return value_.get(); }

 private:
  static std::shared_ptr<T const> const& nothing() {
    static auto const one = std::make_shared<T const>();
    return one;
  }

  std::shared_ptr<T const> value_;
};

}  // namespace edl::autoscaler
