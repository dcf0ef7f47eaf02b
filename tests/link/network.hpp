#pragma once

inline constexpr auto tiny =
    edl::nn::sequential(edl::nn::image{.height = 4, .width = 4}, edl::nn::dense{.units = 2});
