// A reader's two choices: on which machine measured, and their own GPU. In the address first, then in storage.

import { fillDetails, line, make, predictedMark, records, settings, sortAgain, staleMark } from "./blocks.js";

const words = settings.strings;
const root = document.documentElement;
const select = document.getElementById("bb-machine");
const input = document.getElementById("bb-gpu");
const said = document.getElementById("bb-gpu-said");
const GIB = 2 ** 30;
// What the reference machine yielded, as the page came: values by button, blocks whole.
const originals = new Map();
let gpus;

function stored(name) {
  try {
    return localStorage.getItem(`benchbook.${name}`) ?? "";
  } catch {
    return ""; // a reader who forbids storage has the address
  }
}

function chosen(name) {
  return new URLSearchParams(location.search).get(name) ?? stored(name);
}

/** Keep a choice: in the address, so that it can be shared, and in storage, so that it lasts. */
function keep(name, value) {
  const address = new URL(location.href);
  if (value) address.searchParams.set(name, value);
  else address.searchParams.delete(name);
  if (address.href !== location.href) history.replaceState(history.state, "", address);
  try {
    if (value) localStorage.setItem(`benchbook.${name}`, value);
    else localStorage.removeItem(`benchbook.${name}`);
  } catch {
    // See above.
  }
}

// Measured on

async function showMachine(name) {
  hideFits();
  try {
    const data = name === settings.reference ? null : await records();
    for (const button of document.querySelectorAll(".bb-value")) showValue(button, data, name);
    for (const block of document.querySelectorAll(":is(.bb-output, .bb-table, .bb-chart, .bb-claim, .bb-mark)[data-bb]")) {
      showBlock(block, data, name);
      sortAgain(block);
    }
  } finally {
    delete root.dataset.bbPending;
  }
  filterClaims();
  showFits();
}

function showValue(button, data, name) {
  if (!originals.has(button)) {
    const shown = button.querySelector("data").cloneNode(true);
    const mark = button.querySelector(".bb-predicted");
    originals.set(button, { shown, mark, tag: button.querySelector(".bb-tag"), stale: staleBeside(button) !== null });
  }
  const original = originals.get(button);
  const value = data?.values[button.dataset.bb]?.[name];
  button.querySelectorAll(".bb-tag, .bb-predicted").forEach((mark) => mark.remove());
  if (value) {
    setData(button.querySelector("data"), value, name);
    if (value.kind === "prediction") button.append(predictedMark(value.fits_not));
    // What was not measured here says whose it is wherever it stands.
    const quoted = settings.machines.find((machine) => machine.name === name && machine.published);
    if (quoted) button.append(make("sup", { class: "bb-tag", dir: "auto" }, quoted.short));
  } else {
    // Ten times "not measured" in a paragraph cannot be read: keep the value, and say in small whose it is.
    button.querySelector("data").replaceWith(original.shown.cloneNode(true));
    if (original.mark) button.append(original.mark);
    const home = data && settings.machines.find((machine) => machine.name === original.shown.dataset.machine);
    if (home) button.append(make("sup", { class: "bb-tag", dir: "auto" }, home.short));
    else if (original.tag) button.append(original.tag);
  }
  const stale = value ? data.origins[value.origin][name].stale : original.stale;
  staleBeside(button)?.remove();
  if (stale) button.after(staleMark());
}

function staleBeside(button) {
  return button.nextElementSibling?.matches("abbr.bb-old") ? button.nextElementSibling : null;
}

/** Write a value of a machine into its `<data>`. */
function setData(element, value, name) {
  element.value = value.value ?? "";
  element.dataset.machine = name;
  if (value.kind) element.dataset.kind = value.kind;
  else delete element.dataset.kind;
  if (value.bytes) element.dataset.bytes = value.bytes;
  else delete element.dataset.bytes;
  if (value.words) element.removeAttribute("dir");
  else element.dir = "ltr";
  element.textContent = value.text;
}

// What changes in a block; the rest of it stays as it is, with what listens to it.
const SLOTS = ".bb-notes, .bb-output > pre, .bb-output > pre > code, td, .bb-drawing, .bb-ends, .bb-unit, .bb-points, .bb-figures tbody, .bb-provenance, "
  + ".bb-sign, .bb-outcome, .bb-finding, .bb-others";

function showBlock(block, data, name) {
  if (!originals.has(block)) {
    const slots = [...block.querySelectorAll(SLOTS)].map((slot) => [slot, slot.innerHTML, slot.hidden]);
    originals.set(block, { slots, machine: block.dataset.machine, hidden: block.hidden, outcome: block.dataset.outcome });
  }
  const original = originals.get(block);
  const shown = data?.blocks[block.dataset.bb]?.[name];
  if (block.dataset.machine !== original.machine) restore(block, original);
  if (!shown) return;
  block.dataset.machine = name;
  block.hidden = false;
  if (shown.rows) showRows(block, shown.rows, name);
  else if (shown.points) showTradeoff(block, shown);
  else if (shown.drawing) showChart(block, shown);
  else if (shown.outcome) showClaim(block, shown);
  else showOutput(block, shown);
  if (shown.origin) showOrigin(block, shown.origin, data.origins[shown.origin][name], shown.repeats);
}

function restore(block, original) {
  block.dataset.machine = original.machine;
  block.hidden = original.hidden;
  if (original.outcome) block.dataset.outcome = original.outcome;
  const known = new Set(original.slots.map(([slot]) => slot));
  block.querySelectorAll(".bb-provenance").forEach((slot) => known.has(slot) || slot.remove());
  for (const [slot, html, hidden] of original.slots) {
    slot.hidden = hidden;
    if (!slot.matches("pre")) slot.innerHTML = html;
  }
}

function showRows(block, rows, name) {
  for (const row of block.querySelectorAll("tr[data-row]")) {
    row.querySelectorAll("td").forEach((cell, place) => {
      const entry = rows[Number(row.dataset.row)][place];
      const data = cell.querySelector("data");
      setData(data, entry, name);
      cell.querySelector(".bb-predicted")?.remove();
      if (entry.kind === "prediction") data.after(" ", predictedMark(entry.fits_not));
      cell.querySelector(".bb-bar")?.style.setProperty("--bb-share", entry.share ?? 0);
      const ratio = cell.querySelector(".bb-ratio");
      if (ratio) ratio.textContent = entry.ratio ?? "";
    });
  }
}

function showChart(block, shown) {
  block.querySelector(".bb-drawing").innerHTML = shown.drawing;
  block.querySelectorAll(".bb-ends > li").forEach((name, place) => {
    name.hidden = shown.ends[place] === null;
    name.style.setProperty("--bb-end", shown.ends[place]);
  });
  const unit = block.querySelector(".bb-unit");
  unit.hidden = !shown.unit;
  unit.firstElementChild.textContent = shown.unit;
  const cell = (name, text, attributes) => make(name, attributes ?? {}, make("bdi", { dir: "ltr" }, text));
  const rows = shown.figures.map(([first, ...others]) =>
    make("tr", {}, cell("th", first, { scope: "row" }), ...others.map((text) => cell("td", text))));
  block.querySelector(".bb-figures tbody").replaceChildren(...rows);
}

function showTradeoff(block, shown) {
  block.querySelector(".bb-drawing").innerHTML = shown.drawing;
  block.querySelectorAll(".bb-points > li").forEach((name, place) => (name.className = shown.points[place]));
  // As the page has them: the vertical axis first.
  block.querySelectorAll(".bb-unit > bdi").forEach((unit, place) => (unit.textContent = shown.units[1 - place]));
}

function showOutput(block, shown) {
  const notes = block.querySelector(".bb-notes");
  notes.replaceChildren(...shown.notes.map((note) => make("li", {}, make("bdi", {}, note))));
  notes.hidden = !shown.notes.length;
  const output = block.querySelector("pre");
  output.hidden = !shown.output;
  output.querySelector("code").textContent = shown.output;
}

const SIGNS = { holds: "✓", refuted: "✗", "too close to call": "≈", "not measured": "—" };

function showClaim(block, shown) {
  block.dataset.outcome = shown.outcome;
  block.querySelector(".bb-sign").textContent = SIGNS[shown.outcome];
  block.querySelector(".bb-outcome").textContent = shown.verdict;
  for (const part of ["finding", "others"]) {
    const slot = block.querySelector(`.bb-${part}`);
    if (!slot) continue; // the mark of a row
    slot.textContent = shown[part];
    slot.hidden = !shown[part];
  }
  const origin = block.querySelector(".bb-provenance");
  if (origin) origin.hidden = !shown.origin;
}

// The list of claims: those of one verdict, on the machine that is shown.

const outcome = document.getElementById("bb-outcome");

function filterClaims() {
  if (!outcome) return;
  const claims = [...document.querySelectorAll(".bb-claims > .bb-claim")];
  for (const claim of claims) claim.hidden = outcome.value !== "" && claim.dataset.outcome !== outcome.value;
  for (const guide of document.querySelectorAll(".bb-guide")) {
    const own = claimsBelow(guide);
    guide.hidden = guide.nextElementSibling.hidden = own.every((claim) => claim.hidden);
    count(guide.nextElementSibling, own);
  }
  count(document.querySelector(".bb-claims > .bb-counts"), claims);
  document.querySelector(".bb-no-claim").hidden = claims.some((claim) => !claim.hidden);
}

/** The claims that stand below the title of a guide and the line of its counts. */
function claimsBelow(guide) {
  const found = [];
  for (let next = guide.nextElementSibling.nextElementSibling; next?.matches(".bb-claim"); next = next.nextElementSibling) found.push(next);
  return found;
}

/** Say how many of `claims` have which verdict on the machine that is shown. */
function count(line, claims) {
  for (const one of line.children) {
    const number = claims.filter((claim) => claim.dataset.outcome === one.dataset.outcome).length;
    one.querySelector("data").textContent = number;
    one.hidden = !number;
  }
}

outcome?.addEventListener("change", () => {
  const address = new URL(location.href);
  if (outcome.value) address.searchParams.set("outcome", outcome.value);
  else address.searchParams.delete("outcome");
  history.replaceState(history.state, "", address);
  filterClaims();
});

function showOrigin(block, key, origin, repeats) {
  let known = block.querySelector(".bb-provenance");
  if (!known) block.append(known = make("details", { class: "bb-provenance", "data-pagefind-ignore": "" }));
  const summary = make("summary", { title: words.provenance }, line(origin, repeats));
  if (origin.stale) summary.append(" ", make("span", { class: "bb-stale" }, staleMark()));
  known.replaceChildren(summary, make("dl", { "data-origin": key }));
  if (known.open) fillDetails(known);
}

select?.addEventListener("change", () => {
  keep("machine", select.value === settings.reference ? "" : select.value);
  showMachine(select.value);
});

// My GPU: a name of the list, or just a size. What is kept ends in the size: "rtx-4090-24", "24".

const memory = (gpu) => Number(/(?:^|-)(\d+(?:\.\d+)?)$/.exec(gpu)?.[1] ?? NaN) * GIB;

function hideFits() {
  document.querySelectorAll(".bb-fits, .bb-fits-not").forEach((mark) => mark.remove());
}

/** Mark each memory on the page that the reader's GPU can hold, by the rule that stands beside the choice. */
function showFits() {
  hideFits();
  const room = input ? memory(chosen("gpu")) : NaN;
  if (input) document.getElementById("bb-gpu-rule").hidden = Number.isNaN(room);
  if (Number.isNaN(room)) return;
  for (const data of document.querySelectorAll("data[data-bytes]")) {
    const fits = Number(data.dataset.bytes) * 1.05 + GIB <= room;
    const text = fits ? `✓ ${words.fits}` : `✗ ${words.fits_not}`;
    beside(data).after(make("span", { class: fits ? "bb-fits" : "bb-fits-not" }, make("bdi", {}, text)));
  }
}

/** The last of what belongs to a value: its mark of age in a sentence, its ratio or mark in a table. */
function beside(data) {
  const button = data.closest(".bb-value");
  if (button) return staleBeside(button) ?? button;
  return [".bb-ratio", ".bb-predicted"].map((name) => data.parentElement.querySelector(`:scope > ${name}`)).find(Boolean) ?? data;
}

async function knownGpus() {
  gpus ??= fetch(settings.gpus).then((answer) => answer.json()).catch(() => []);
  return gpus;
}

async function showGpu(gpu) {
  const found = /^[\d.]+$/.test(gpu) ? null : (await knownGpus()).find((one) => one.id === gpu);
  input.value = found ? `${found.name} · ${found.memory_gb} GB` : gpu ? `${memory(gpu) / GIB} GB` : "";
}

/** The GPU that a reader means by `text`; undefined if none. */
async function understood(text) {
  const size = /^([\d.]+)\s*(?:G|GB|GiB)?$/i.exec(text);
  if (size && Number(size[1]) > 0) return String(Number(size[1]));
  const plain = (name) => name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "");
  const known = await knownGpus();
  const exact = known.filter((one) => plain(`${one.name} · ${one.memory_gb} GB`) === plain(text));
  const near = known.filter((one) => plain(one.name).includes(plain(text)));
  return (exact[0] ?? near.find((one) => plain(one.name).endsWith(plain(text))) ?? near[0])?.id;
}

input?.addEventListener("focus", async () => {
  const options = (await knownGpus()).map((one) => make("option", { value: `${one.name} · ${one.memory_gb} GB` }));
  document.getElementById("bb-gpus").replaceChildren(...options);
}, { once: true });

input?.addEventListener("change", async () => {
  const text = input.value.trim();
  const gpu = text ? await understood(text) : "";
  said.textContent = gpu === undefined ? words.my_gpu_unknown : "";
  keep("gpu", gpu ?? "");
  if (gpu) await showGpu(gpu);
  showFits();
});

function start() {
  const machine = chosen("machine");
  const known = settings.machines.some((one) => one.name === machine);
  const gpu = chosen("gpu");
  const wanted = new URLSearchParams(location.search).get("outcome") ?? "";
  if (outcome && wanted in SIGNS) outcome.value = wanted;
  if (known && machine !== settings.reference) {
    select.value = machine;
    keep("machine", machine);
    showMachine(machine);
  } else {
    filterClaims();
    showFits();
  }
  if (input && !Number.isNaN(memory(gpu))) {
    keep("gpu", gpu);
    showGpu(gpu);
  }
}

start();
// A page brought back from memory as it was: the choice may have changed on another since.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  if (select) select.value = settings.reference;
  showMachine(settings.reference).then(start);
});
