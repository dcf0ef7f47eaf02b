// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace edl::controller {

/// A constant value that its copies share: thousands of pods have one shape. Reads like a pointer. Copies may
/// be read and dropped by several threads at once.
template <class T>
class shared {
 public:
  shared() : value_(nothing()) {}
  shared(T value) : value_(std::make_shared<T const>(std::move(value))) {}
  explicit shared(std::shared_ptr<T const> value) : value_(value ? std::move(value) : nothing()) {}

  /// Whether both are the same copy, which says nothing of equal values.
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

}  // namespace edl::controller
