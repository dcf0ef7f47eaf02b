// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "edl/compute/data/reader.hpp"

namespace edl::data {

using feature_names = std::set<std::string, std::less<>>;

/// A reader that can leave out unused features.
class choosing_reader : public reader {
 public:
  /// From now on records need only contain these features; null: all again.
  virtual void choose(feature_names const* names) = 0;

  /// Whether records lack a feature because it was not chosen.
  virtual bool leaves_out(std::string_view name) const = 0;
};

/// Learns which features a thread uses. At first it reads complete records, and records the names of used
/// features; then the reader leaves out the others. If one of them is used later, the record must be read
/// again:
///
///     do {
///       in.read(shard, record, into);
///     } while (!choice.complete([&] { feed(into); }));
///
/// Use a record only on the thread that reads it. Thread safety: each thread has its own.
class feature_choice {
 public:
  static constexpr int learned = 64;  ///< records

  feature_choice() = default;
  explicit feature_choice(choosing_reader* of) : of_(of) {}

  /// Calls `act` for the record that was read last; its exceptions propagate. False: read the record again,
  /// and repeat the call.
  template <class Act>
  bool complete(Act&& act) {
    if (!of_) return act(), true;
    missed_ = false;
    try {
      scope const listening(*this);
      act();
    } catch (...) {
      if (!again()) throw;
      return false;
    }
    return !again();
  }

  /// Called for every feature that this thread reads from a record.
  static void ask(std::string_view name, bool found) {
    if (now_ != nullptr) [[unlikely]]
      now_->note(name, found);
  }
  /// Called when all features are listed.
  static void list() {
    if (now_ != nullptr) [[unlikely]]
      now_->note_all();
  }

 private:
  struct left_out {};  // not an error type, so that `feed` does not catch it
  struct scope {
    explicit scope(feature_choice& of) { now_ = &of; }
    ~scope() { now_ = nullptr; }
  };

  void note(std::string_view name, bool found) {
    if (records_ < learned) {
      if (!names_.contains(name)) names_.emplace(name);
    } else if (!found && !names_.contains(name) && of_->leaves_out(name)) {
      names_.emplace(name);
      missed_ = true;
      throw left_out();
    }
  }
  void note_all() {
    bool const known = std::exchange(all_, true);
    if (known || records_ < learned) return;
    missed_ = true;
    throw left_out();
  }
  bool again() {
    if (records_ < learned ? ++records_ == learned : missed_) of_->choose(all_ ? nullptr : &names_);
    return missed_;
  }

  choosing_reader* of_ = nullptr;  // null: records are always whole
  feature_names names_;
  bool all_ = false, missed_ = false;
  int records_ = 0;
  static inline constinit thread_local feature_choice* now_ = nullptr;
};

}  // namespace edl::data
