// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace edl {

/// While it lives, and if it is asked to, a backend computes products in float32, whatever precision it was
/// opened with. Nested objects change nothing.
template <class Backend>
class exact_products {
 public:
  exact_products(Backend& device, bool on)
      : device_(device), on_(on), before_(on && device.exact_products(true)) {}
  ~exact_products() {
    if (on_) device_.exact_products(before_);
  }
  exact_products(exact_products const&) = delete;

 private:
  Backend& device_;
  bool on_, before_;
};

}  // namespace edl
