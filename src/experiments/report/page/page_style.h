// The style sheet of a report's page: light and dark, wide and narrow, on screen and on paper.
#pragma once

#include <string_view>

namespace finetune {

inline constexpr std::string_view kPageStyle = R"(:root {
  color-scheme: light dark;
  --page: #fff; --text: #1a1d21; --soft: #55595f; --grid: #e1e4e8; --axis: #71767d; --link: #0b57a4; --shadow: #0003;
  --right: #2f74b5; --wrong: #d1641c; --other: #8a8f98; --best: #e4f2e7;
  --c0: #1f6fb4; --c1: #c14a00; --c2: #2a7d3f; --c3: #a3347f; --c4: #6b4fbb; --c5: #846000; --c6: #00717d; --c7: #555;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --text: #e8eaed; --soft: #b3b8bf; --grid: #30353b; --axis: #8b9199; --link: #84bdf7; --shadow: #fff4;
    --right: #3f83c4; --wrong: #cf6a28; --other: #8d939c; --best: #1d3324;
    --c0: #6db3f2; --c1: #ff9e57; --c2: #6fcf86; --c3: #f08ccf; --c4: #b7a1ff; --c5: #e0b84c; --c6: #4fd0dd; --c7: #c4c7cc;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 8px 16px 48px; }
h1, h2, h3, p, li, td, th, summary { overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: .5em 0 .3em; }
h2 { font-size: 1.3rem; margin: 1.4em 0 .5em; }
h4 { font-size: 1rem; margin: .4em 0; }
h3 { font-size: 1.1rem; margin: 2em 0 .6em; border-top: 1px solid var(--grid); padding-top: .8em; }
a { color: var(--link); }
.head { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(340px, 100%), 1fr)); gap: 8px 32px; align-items: start; }
.head p { margin: .4em 0; }
.lead { font-size: 1.05rem; }
nav ul, .legend { display: flex; flex-wrap: wrap; gap: 4px 18px; padding: 0; margin: 8px 0; list-style: none; }
nav li, .legend li { min-width: 0; }
.key { width: 28px; height: 8px; margin-right: 6px; vertical-align: middle; }
details.run > h3:first-of-type { border: 0; margin-top: 0; padding-top: 0; }
details.run { border-top: 1px solid var(--grid); margin-top: 1em; }
details.run:not([open]) { margin: 0; }
details.run:not([open]) h2 { font-size: 1rem; margin: .3em 0; }
summary { cursor: pointer; }
details.run > summary h2 { display: inline-block; margin: .7em 0; max-width: calc(100% - 2em); vertical-align: middle; }
.figures, .tables { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(340px, 100%), 1fr)); gap: 22px 28px; align-items: start; }
.tables { grid-template-columns: repeat(auto-fit, minmax(min(340px, 100%), 1fr)); }
figure { margin: 0; min-width: 0; }
figure.wide { grid-column: 1 / -1; }
figcaption, caption { font-weight: 600; margin-bottom: 4px; text-align: start; }
figure > svg { display: block; width: 100%; height: auto; max-width: 480px; }
svg text { font: 11px system-ui, sans-serif; fill: var(--text); }
svg .name { fill: var(--soft); }
svg .count { font-size: 9.5px; }
.grid { stroke: var(--grid); stroke-width: 1; }
.axis { stroke: var(--axis); stroke-width: 1; }
.diagonal { stroke: var(--axis); stroke-width: 1.2; stroke-dasharray: 5 4; }
.right { fill: var(--right); } .wrong { fill: var(--wrong); } .other { fill: var(--other); }
.line { fill: none; stroke-width: 1.7; stroke-linejoin: round; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); }
.c4 { --c: var(--c4); } .c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); }
.line { stroke: var(--c); } .dot { fill: var(--c); }
.d1 { stroke-dasharray: 7 3; } .d2 { stroke-dasharray: 2 3; } .d3 { stroke-dasharray: 8 3 2 3; }
.note { color: var(--soft); font-size: .87rem; margin: 4px 0; }
figure details { margin-top: 4px; font-size: .87rem; }
figure summary { color: var(--link); }
/* A shadow at an edge says that there is more. */
.scroll { overflow: auto; max-width: 100%; background:
    linear-gradient(to right, var(--page) 30%, transparent) left / 40px 100% no-repeat local,
    linear-gradient(to left, var(--page) 30%, transparent) right / 40px 100% no-repeat local,
    linear-gradient(to right, var(--shadow), transparent) left / 12px 100% no-repeat scroll,
    linear-gradient(to left, var(--shadow), transparent) right / 12px 100% no-repeat scroll; }
figure details .scroll { max-height: 22em; }
.tall { max-height: 34em; }
table { border-collapse: collapse; font-size: .87rem; }
/* The heading above says the same. */
figure caption, .titled caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
th, td { padding: 3px 10px 3px 0; text-align: start; vertical-align: top; border-bottom: 1px solid var(--grid); }
th { color: var(--soft); font-weight: 600; }
tbody th { color: var(--text); font-weight: 400; min-width: 7em; }
td { min-width: 3em; max-width: 34em; }
.scroll td, .scroll th { overflow-wrap: break-word; }
.tables > table td, .tables > table th { overflow-wrap: anywhere; }
th[scope=col] { overflow-wrap: normal; }
td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.bar { white-space: nowrap; font-variant-numeric: tabular-nums; }
td.bar svg { width: 90px; height: .7em; margin-right: 6px; }
tr.best { background: var(--best); }
@media (max-width: 640px) {
  .cards thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .cards table, .cards tbody, .cards tr, .cards td, .cards th { display: block; min-width: 0; }
  .cards tr { border-bottom: 1px solid var(--axis); padding: 6px 0; }
  .cards td, .cards tbody th { border: 0; padding: 1px 0; text-align: start; white-space: normal; overflow-wrap: anywhere; }
  .cards [data-label]::before { content: attr(data-label) ": "; color: var(--soft); }
  .cards td:empty { display: none; }
  .cards.tall { max-height: none; }
}
@media print { details.run > summary { list-style: none; } .tall, figure details .scroll { max-height: none; } }
)";

}  // namespace finetune
