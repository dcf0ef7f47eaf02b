#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which of cuDNN's kernels edl chooses, beside the best, as the tables of docs/gpu.md.

    choices.py ENGINES.csv[.xz] [BATCH]    measured kernels, a row each, in the order in which cuDNN proposes them

Columns: precision, pass, batch, extents (in_h … groups), fused, engine, kind, ms, error, nans, edl ("kept": the
precision is)."""
import collections
import csv
import lzma
import sys

MOST_WAYS, MOST_OF_A_KIND, MOST_OF_AN_ENGINE = 8, 4, 3  # as in library/conv2d.cpp
TOLERANCE = {"bfloat16": 0.02, "tf32": 1e-3, "float32": 1e-4}  # as in library/trial.cpp
NAMES = {"forward": "forward", "weights": "back to the kernel", "data": "back to the image"}
EXTENTS = ["in_h", "in_w", "in_c", "out_h", "out_w", "out_c", "kernel_h", "kernel_w", "stride_h", "stride_w", "before_h",
           "before_w", "after_h", "after_w", "groups"]


def wrong(row):
    return int(row["nans"]) > 0 or not float(row["error"]) <= TOLERANCE[row["precision"]]


def measured(rows):
    """Those of the kernels that edl measures."""
    kinds = list(dict.fromkeys(r["kind"] for r in rows))
    found = []
    for kind in kinds:
        most = MOST_WAYS if len(kinds) == 1 else min(MOST_OF_A_KIND, MOST_WAYS - len(found))
        used, here = collections.Counter(), 0
        for r in rows:
            if r["kind"] != kind or r["edl"] != "kept" or here == most or used[r["engine"]] == MOST_OF_AN_ENGINE:
                continue
            found.append(r)
            used[r["engine"]] += 1
            here += 1
    return found


def main():
    name = sys.argv[1]
    batch = sys.argv[2] if len(sys.argv) > 2 else "1024"
    with (lzma.open if name.endswith(".xz") else open)(name, "rt") as file:
        rows = [r for r in csv.DictReader(file)]
    problems = collections.defaultdict(list)
    for r in rows:
        if r["batch"] == batch:
            problems[(r["precision"], r["pass"], *(r[e] for e in EXTENTS), r["fused"])].append(r)
    sums = collections.defaultdict(lambda: [0, 0.0, 0.0])
    lines = []
    for key, of in problems.items():
        right = [r for r in of if r["edl"] == "kept" and not wrong(r)]
        taken = [r for r in measured(of) if not wrong(r)]
        if not taken:
            continue
        chosen, best = (min(some, key=lambda r: float(r["ms"])) for some in (taken, right))
        s = sums[key[:2]]
        s[0], s[1], s[2] = s[0] + 1, s[1] + float(chosen["ms"]), s[2] + float(best["ms"])
        lines.append((key, of[0], chosen, best))
    print(f"{sum(float(r['error']) > 0.4 for r in rows)} of {len(rows)} rows err by 0.4 of the results' size and more\n")
    print("| precision | pass | shapes | chosen, µs | best, µs |\n|---|---|---|---|---|")
    for (precision, which), (shapes, chosen, best) in sums.items():
        print(f"| {precision} | {NAMES.get(which, which)} | {shapes} | {chosen * 1e3:,.0f} | {best * 1e3:,.0f} |")
    print("\n| pass | image | filters | kernel | stride | border | chosen, µs | best, µs |\n|---|---|---|---|---|---|---|---|")
    for key, g, chosen, best in lines:
        if g["precision"] != "bfloat16":
            continue
        before, after = (int(g["before_h"]), int(g["before_w"])), (int(g["after_h"]), int(g["after_w"]))
        border = "-" if before == after == (0, 0) else "even" if before == after else "more after"
        times = " | ".join(f"{float(r['ms']) * 1e3:.0f} (engine {r['engine']})" for r in (chosen, best))
        print(f"| {NAMES.get(g['pass'], g['pass'])} | {g['in_h']} × {g['in_w']} × {g['in_c']} | {g['out_c']} | "
              f"{g['kernel_h']} × {g['kernel_w']} | {g['stride_h']} | {border} | {times} |")


if __name__ == "__main__":
    main()
