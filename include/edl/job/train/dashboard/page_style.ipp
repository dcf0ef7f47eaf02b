// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/inline.hpp"
#include "edl/job/train/dashboard/page.hpp"

namespace edl::train {

EDL_INLINE std::string_view dashboard_style() {
  return R"page(
:root {
  color-scheme: light dark;
  --back: #f6f7f9; --card: #fff; --text: #1b2027; --quiet: #57606a; --line: #d5dae1; --grid: #e7eaee;
  --accent: #0b5cad; --good: #1a7f37; --warn: #935800; --bad: #c0262d; --notice: #fff4d6;
  --s0: #0b62c4; --s1: #c25700; --s2: #1a7f37; --s3: #7d3fc1; --s4: #b3186d; --s5: #006d77; --s6: #6b5900; --s7: #5c6570;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #0f1318; --card: #171c23; --text: #e4e8ed; --quiet: #9aa5b1; --line: #323b46; --grid: #262d36;
    --accent: #7ab7ff; --good: #5bd07c; --warn: #e9b04f; --bad: #ff8078; --notice: #3a2f12;
    --s0: #68b0ff; --s1: #ffa657; --s2: #5bd07c; --s3: #c79bff; --s4: #ff8cc6; --s5: #4fd1d9; --s6: #d9c34a; --s7: #a9b4c0;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); line-height: 1.45;
  font-family: system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; font-size: 15px; }
header, main, footer { max-width: 120rem; margin: 0 auto; padding: 0 clamp(.75rem, 2vw, 2rem); }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem 1rem; padding-top: 1rem; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0 0 .6rem; }
h3 { font-size: .95rem; margin: 0; overflow-wrap: anywhere; }
p { margin: .3rem 0; overflow-wrap: anywhere; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
main:focus-visible { outline: none; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem;
  margin: 1rem 0; min-width: 0; }
.unseen { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
.skip { position: absolute; left: -100rem; background: var(--card); padding: .5rem; z-index: 1; }
.skip:focus { left: .5rem; top: .5rem; }
.state { margin: 0; padding: .1rem .7rem; border-radius: 99px; border: 1px solid currentColor; font-weight: 600;
  color: var(--accent); }
.state.good { color: var(--good); } .state.warn { color: var(--warn); } .state.bad { color: var(--bad); }
.link { margin: 0 0 0 auto; color: var(--quiet); }
.link::before { content: "● "; color: var(--quiet); }
.link.live::before { color: var(--good); } .link.gone::before { color: var(--bad); }
.quiet { color: var(--quiet); }
.notice { background: var(--notice); border-radius: 6px; padding: .4rem .7rem; border-left: 4px solid var(--warn); }
.notice.bad { border-left-color: var(--bad); }
.bar { display: flex; flex-wrap: wrap; align-items: center; gap: .3rem 1rem; margin: 0 0 .8rem; }
progress { flex: 1 1 16rem; height: .8rem; accent-color: var(--accent); min-width: 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.2rem, 1fr)); gap: .6rem 1rem; margin: .6rem 0 0; }
.tiles dt { color: var(--quiet); font-size: .85rem; }
.tiles dd { margin: 0; font-size: 1.45rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.tiles.small dd { font-size: 1.15rem; }
.head { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .3rem 1rem; margin-bottom: .6rem; }
.head h2 { margin: 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 27rem), 1fr)); gap: 1rem; }
figure { margin: 0; min-width: 0; border: 1px solid var(--line); border-radius: 8px; padding: .6rem .7rem; }
figcaption { display: flex; flex-wrap: wrap; gap: .2rem .9rem; align-items: baseline; }
.key::before { content: ""; display: inline-block; width: 1.1em; border-top: 3px solid var(--c); margin-right: .35em;
  vertical-align: .25em; }
.key.dashed::before { border-top-style: dashed; }
.s0 { --c: var(--s0); } .s1 { --c: var(--s1); } .s2 { --c: var(--s2); } .s3 { --c: var(--s3); }
.s4 { --c: var(--s4); } .s5 { --c: var(--s5); } .s6 { --c: var(--s6); } .s7 { --c: var(--s7); }
.key { font-size: .85rem; font-variant-numeric: tabular-nums; }
.plot { display: block; width: 100%; height: 13rem; margin-top: .3rem; touch-action: pan-y; }
.plot text, .strip text { fill: var(--quiet); font-size: 11px; font-variant-numeric: tabular-nums; }
.plot .grid, .strip .grid { stroke: var(--grid); }
.plot .axis, .strip .axis { stroke: var(--line); }
.plot path { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; }
.plot path.dashed { stroke-dasharray: 6 3; }
.plot path.raw { opacity: .25; }
.plot circle { fill: var(--c); }
.plot .cross { stroke: var(--quiet); stroke-dasharray: 2 2; }
.readout { min-height: 1.3em; font-size: .85rem; color: var(--quiet); font-variant-numeric: tabular-nums; margin: 0; }
#compare { margin-top: 1rem; }
details summary { cursor: pointer; font-size: .85rem; color: var(--quiet); }
.values { max-height: 16rem; overflow-y: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--grid); overflow-wrap: anywhere;
  vertical-align: top; }
th { color: var(--quiet); font-weight: 500; font-size: .85rem; }
tbody th { color: var(--text); font-size: 1em; }
td.awaited, td.warn { color: var(--warn); } td.given, td.bad { color: var(--bad); } td.good { color: var(--good); }
.rows th, .rows td { overflow-wrap: normal; }
.rows .wide { overflow-wrap: anywhere; }
.rows th label, .rows th input { cursor: pointer; overflow-wrap: anywhere; }
.rows td.number, .rows th.number { text-align: right; padding-right: 1rem; }
input[type=search] { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line);
  border-radius: 6px; padding: .2rem .5rem; width: 14rem; max-width: 100%; }
#tables h3 { margin-top: .8rem; }
@media (min-width: 44.01rem) { .rows tbody th { white-space: nowrap; max-width: 24rem; overflow: hidden; text-overflow: ellipsis; } }
.values table { font-size: .85rem; }
.strip svg { display: block; width: 100%; }
.strip .mark { fill: var(--quiet); }
.strip .good { fill: var(--good); } .strip .warn { fill: var(--warn); } .strip .bad { fill: var(--bad); }
.strip .model { fill: var(--accent); }
.events { list-style: none; margin: .5rem 0; padding: 0; max-height: 26rem; overflow-y: auto; }
.events li { display: grid; grid-template-columns: 5.2rem 6.6rem 1fr; gap: .1rem .7rem; padding: .25rem 0;
  border-bottom: 1px solid var(--grid); overflow-wrap: anywhere; }
.events time { color: var(--quiet); font-variant-numeric: tabular-nums; }
.kind { font-weight: 600; color: var(--quiet); }
.kind.good { color: var(--good); } .kind.warn { color: var(--warn); } .kind.bad { color: var(--bad); }
.kind.model { color: var(--accent); }
select, button { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: .2rem .5rem; }
footer { color: var(--quiet); padding-bottom: 2rem; font-size: .9rem; }
@media (max-width: 44rem) {
  .rows thead { position: absolute; clip-path: inset(50%); }
  .rows tr { display: grid; grid-template-columns: 1fr 1fr; gap: .1rem .8rem; padding: .4rem 0; border-bottom: 1px solid var(--line); }
  .rows th, .rows td { border: 0; padding: 0; overflow-wrap: anywhere; }
  .rows th, .rows .wide { grid-column: 1 / -1; }
  .rows td.number { text-align: left; padding: 0; }
  .rows th { font-weight: 600; }
  .rows td::before { content: attr(data-column) ": "; color: var(--quiet); font-size: .85rem; }
  .rows td.blank { display: none; }
  .events li { grid-template-columns: 5.2rem 1fr; }
  .events li span:last-child { grid-column: 1 / -1; }
}
@media (forced-colors: active) { .plot path { stroke: CanvasText; } }
)page";
}

}  // namespace edl::train
