// A reader's two choices: on which machine measured, and their own GPU. In the address first, then in storage.

import { fillDetails, make, records, settings, sortAgain } from "./blocks.js";

const words = settings.strings;
const OUTCOMES = ["holds", "refuted", "too close to call", "not applicable", "not measured"];
const root = document.documentElement;
const select = document.getElementById("bb-machine");
const input = document.getElementById("bb-gpu");
const said = document.getElementById("bb-gpu-said");
const GIB = 2 ** 30;
// What each block shows as the page comes: its attributes, and the inside of its parts.
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
    const data = name === settings.reference ? {} : await records(name);
    for (const block of document.querySelectorAll("[data-bb]")) {
      show(block, data[block.matches(".bb-value") ? "values" : "blocks"]?.[block.dataset.bb]);
    }
  } finally {
    delete root.dataset.bbPending;
  }
  filterClaims();
  showFits();
}

/** Put what a machine changes in `block` in its place; where it changes nothing, what the page came with. */
function show(block, change) {
  if (!originals.has(block)) {
    if (!change?.parts) return;
    originals.set(block, kept(block, change));
  }
  const original = originals.get(block);
  for (const [name, value] of Object.entries({ ...original.attributes, ...change?.attributes })) {
    if (value === null) block.removeAttribute(name);
    else block.setAttribute(name, value);
  }
  for (const [name, html] of Object.entries({ ...original.parts, ...change?.parts })) {
    const element = part(block, name);
    const open = [...element.querySelectorAll("details")].map((one) => one.open);
    element.innerHTML = html;
    element.querySelectorAll("details").forEach((one, place) => (one.open = open[place] ?? false));
  }
  block.querySelectorAll(".bb-provenance[open]:not(:empty)").forEach(fillDetails);
  sortAgain(block);
}

/** What `change` will change in `block`, as it is now. */
function kept(block, { attributes = {}, parts }) {
  return {
    attributes: Object.fromEntries(Object.keys(attributes).map((name) => [name, block.getAttribute(name)])),
    parts: Object.fromEntries(Object.keys(parts).map((name) => [name, part(block, name).innerHTML])),
  };
}

function part(block, name) {
  return name ? block.querySelector(`[data-part="${name}"]`) : block;
}

// A list of claims: those of one verdict, on the machine that is shown.

const outcome = document.getElementById("bb-outcome");

function filterClaims() {
  const list = document.querySelector(".bb-claims");
  if (!list) return;
  const claims = [...list.querySelectorAll(".bb-claim")];
  const wanted = list.dataset.only ?? outcome.value;
  for (const claim of claims) claim.hidden = wanted !== "" && claim.dataset.outcome !== wanted;
  list.querySelector(".bb-no-claim").hidden = claims.some((claim) => !claim.hidden);
}

outcome?.addEventListener("change", () => {
  const address = new URL(location.href);
  if (outcome.value) address.searchParams.set("outcome", outcome.value);
  else address.searchParams.delete("outcome");
  history.replaceState(history.state, "", address);
  filterClaims();
});

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

/** The last of what belongs to a value: its button in a sentence, its ratio or mark in a table. */
function beside(data) {
  const button = data.closest(".bb-value");
  if (button) return button;
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
  const known = settings.machines.includes(machine);
  const gpu = chosen("gpu");
  const wanted = new URLSearchParams(location.search).get("outcome") ?? "";
  if (outcome && OUTCOMES.includes(wanted)) outcome.value = wanted;
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
