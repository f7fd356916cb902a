"""The page to try heads with: one file, nothing fetched from elsewhere."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>gramfold</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.4rem; } textarea { width: 100%; height: 7rem; font-family: monospace; box-sizing: border-box; }
button, select, input { font: inherit; margin: .3rem 0; } #answer { white-space: pre-wrap; font-family: monospace; }
.bar { background: #3f51b5; height: .7rem; } td { padding: .1rem .6rem .1rem 0; } .error { color: #b00020; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181a20; } }
</style>
</head>
<body>
<h1>Try a head</h1>
<p><label>Head <select id="head"></select></label> <span id="about"></span></p>
<p id="picture"><label>Image <input type="file" id="image" accept="image/*"></label></p>
<p><label for="question">Question</label><textarea id="question" spellcheck="false"></textarea></p>
<p><button id="ask">Predict</button></p>
<table id="shares"></table>
<div id="answer"></div>
<script>
const heads = __HEADS__;
const at = id => document.getElementById(id);
for (const head of heads) at("head").add(new Option(head.name, head.name));
function current() { return heads[at("head").selectedIndex]; }
function show() {
  const head = current();
  at("about").textContent = head.method + ", " + (head.labels ? head.labels.length + " classes" : "numbers");
  at("picture").hidden = !head.takes.includes("image");
  const size = head.inputs.reduce((a, b) => a * b, 1);
  const samples = { texts: ["a text"], rows: [{}], features: head.inputs.length === 1 ? [Array(size).fill(0)] : [] };
  const key = head.takes.includes("texts") ? "texts" : head.takes.includes("rows") ? "rows" : "features";
  at("question").value = JSON.stringify({ [key]: samples[key] });
}
async function ask() {
  const file = at("image").files[0], url = encodeURIComponent(current().name) + "/predict";
  let body, headers = {};
  if (file && !at("picture").hidden) { body = new FormData(); body.append("image", file); }
  else { body = at("question").value; headers = { "Content-Type": "application/json" }; }
  const response = await fetch(url, { method: "POST", body, headers });
  const found = await response.json();
  at("shares").replaceChildren();
  at("answer").className = response.ok ? "" : "error";
  if (!response.ok) { at("answer").textContent = found.error; return; }
  const first = found.predictions[0];
  const shares = Object.entries(first.probabilities || {}).sort((a, b) => b[1] - a[1]).slice(0, 10);
  for (const [name, share] of shares) {
    const row = at("shares").insertRow();
    row.insertCell().textContent = name;
    row.insertCell().textContent = (100 * share).toFixed(1) + " %";
    const bar = document.createElement("div");
    bar.className = "bar"; bar.style.width = (16 * share) + "rem";
    row.insertCell().append(bar);
  }
  at("answer").textContent = found.predictions.map(p => "class" in p ? p.class : p.values.join(", ")).join("\\n");
}
at("head").onchange = show; at("ask").onclick = ask; show();
if (location.hash === "#ask") ask();
</script>
</body>
</html>
"""


def render(heads: Sequence[Mapping[str, Any]]) -> str:
    """The page for some heads; their names cannot leave the script they are in."""
    return _PAGE.replace("__HEADS__", json.dumps(list(heads)).replace("<", "\\u003c"))
