// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

/// A model that counts what it is trained on: record i of the data set `N.counted` has only feature i, every
/// gradient is -1 for each record, and the learning rate is 1. What each step adds to the weights is
/// therefore 1 in all, and what a record adds to its own weight is 1 / (records of the step), each time that
/// it counts.
namespace counting {

inline constexpr int records = 128;

/// Asked in each pass over a minibatch, by the thread that computes: how long records take, and who hangs.
inline std::function<void(int rows)> in_pass;

/// What `main` of the model's program is.
int main(int argc, char** argv);

}  // namespace counting
