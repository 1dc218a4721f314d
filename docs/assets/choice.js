// A reader's two choices: on which machine measured, and their own GPU. In the address first, then in storage.

import { fillDetails, make, records, settings, sortAgain } from "./blocks.js";
import { gpuField, hasTensorCores, isOlder, remarkOnOlder } from "./gpu_field.js";
import { chosen, keep } from "./keeping.js";

const words = settings.strings;
const OUTCOMES = ["holds", "refuted", "too close to call", "too few runs", "not applicable", "not measured"];
const root = document.documentElement;
const select = document.getElementById("bb-machine");
const input = document.getElementById("bb-gpu");
const GIB = 2 ** 30;
const TAG = /<sup class="bb-tag"[^]*?<\/sup>/; // whose a number is, beside it
const TELLING = 8; // of a GPU's memory, the part from which on it is worth a word that a run fits
// What each block shows as the page comes: its attributes, and the inside of its parts.
const originals = new Map();
let gpu;
const rewritten = []; // pieces of code that say fp16 where they said bf16

// Measured on

async function showMachine(name) {
  hideFits();
  const elsewhere = document.getElementById("bb-elsewhere");
  if (elsewhere) elsewhere.hidden = name === settings.reference;
  try {
    const data = name === settings.reference ? {} : await records(name);
    for (const block of document.querySelectorAll("[data-bb]:not(.bb-value)")) {
      show(block, data.blocks?.[block.dataset.bb]);
    }
    for (const values of together()) showTogether(values, data.values ?? {}, name);
  } finally {
    delete root.dataset.bbPending;
  }
  filterClaims();
  showFits();
}

/** The values of each sentence, as far as HTML tells: of a paragraph, an item or a row. */
function together() {
  const found = new Map();
  for (const value of document.querySelectorAll(".bb-value")) {
    const place = value.closest("p, li, tr, dd, h1, h2, h3") ?? value;
    found.set(place, [...(found.get(place) ?? []), value]);
  }
  return found.values();
}

/** Show what a sentence compares: all of `machine` or, where that lacks one, all as the page came, and whose. */
function showTogether(values, changes, machine) {
  const own = (value) => changes[value.dataset.bb]?.parts?.[""]?.includes(`data-machine="${machine}"`);
  const tag = values.map((value) => !own(value) && changes[value.dataset.bb]?.parts?.[""].match(TAG)?.[0]).find(Boolean);
  for (const value of values) {
    const kept = tag && own(value);
    const before = originals.get(value)?.parts[""] ?? value.innerHTML;
    show(value, kept ? { parts: { "": `${before}\u00a0${tag}` } } : changes[value.dataset.bb]);
  }
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

// My GPU: whether what is shown fits there, and what it computes otherwise than the GPUs that most lines are written for.

function hideFits() {
  document.querySelectorAll(".bb-fits, .bb-fits-not, .bb-another").forEach((mark) => mark.remove());
}

/** Mark what the reader's GPU can hold, by the rule beside the choice, where its memory is no small part of the GPU's.
 *
 * What a CPU held tells that of no GPU: its kernels keep other tensors.
 */
function showFits() {
  hideFits();
  if (!input) return;
  const other = gpu && !settings.accelerated.includes(select?.value ?? settings.reference) ? settings.accelerated[0] : undefined;
  if (other) document.getElementById("bb-gpu-said").after(fromAnother(other));
  document.getElementById("bb-gpu-rule").hidden = !gpu || Boolean(other);
  if (!gpu) return;
  for (const data of document.querySelectorAll("data[data-bytes]")) {
    if (!settings.accelerated.includes(data.dataset.machine)) continue;
    const bytes = Number(data.dataset.bytes);
    const fits = bytes * 1.05 + GIB <= gpu.bytes;
    if (fits && (gpu.shared || bytes < gpu.bytes / TELLING)) continue;
    const text = fits ? `✓ ${words.fits}` : `✗ ${words.fits_not}`;
    beside(data).after(make("span", { class: fits ? "bb-fits" : "bb-fits-not" }, make("bdi", {}, text)));
  }
}

/** Leads to what the chosen GPU has room for, and takes it along: it may be that of another's link. */
function showWay() {
  const way = document.getElementById("bb-gpu-fitting");
  if (!way) return;
  way.hidden = !gpu || Boolean(gpu.shared);
  if (gpu) way.href = `${way.href.replace(/[?#].*$/, "")}?gpu=${gpu.id}#calc-fitting`;
}

/** Says that the numbers are a CPU's, with a button that shows those of `machine` instead. */
function fromAnother(machine) {
  const button = make("button", { type: "button", class: "bb-link" }, make("bdi", {}, [...select.options].find((one) => one.value === machine).text));
  button.addEventListener("click", () => {
    select.value = machine;
    select.dispatchEvent(new Event("change"));
    select.focus();
  });
  return make("span", { class: "bb-another" }, words.my_gpu_cpu + words.between_sentences, button);
}

/** The last of what belongs to a value: its button in a sentence, its ratio or mark in a table. */
function beside(data) {
  const button = data.closest(".bb-value");
  if (button) return button;
  return [".bb-ratio", ".bb-predicted"].map((name) => data.parentElement.querySelector(`:scope > ${name}`)).find(Boolean) ?? data;
}

/** Where a GPU computes no bf16, lines to paste say fp16, and that they do; a remark says what else is otherwise. */
function showOlder() {
  document.querySelectorAll(".bb-older").forEach((one) => one.remove());
  for (const node of rewritten.splice(0)) node.data = node.data.replace(/fp16=$/, "bf16=");
  if (!isOlder(gpu)) return;
  document.getElementById("bb-gpu-said").after(remarkOnOlder(gpu, words));
  if (!hasTensorCores(gpu)) return;
  for (const code of document.querySelectorAll("article pre code")) {
    const nodes = argumentsOf(code);
    if (nodes.length === 0) continue;
    for (const node of nodes) node.data = node.data.replace(/bf16=$/, "fp16=");
    rewritten.push(...nodes);
    code.closest("pre").parentElement.after(make("p", { class: "bb-older" }, words.my_gpu_fp16.replace("{name}", gpu.name)));
  }
}

/** The pieces of `code` that end in an argument `bf16=` which is then True. */
function argumentsOf(code) {
  const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  const nodes = [];
  for (let before, node = walker.nextNode(); node; before = node, node = walker.nextNode()) {
    if (node.data === "True" && /(?:^|\W)bf16=$/.test(before?.data ?? "")) nodes.push(before);
  }
  return nodes;
}

const chooseKept = input && gpuField("bb-gpu", settings.gpus, words, (one) => {
  gpu = one;
  showFits();
  showOlder();
  showWay();
});

function start() {
  const machine = chosen("machine");
  const known = settings.machines.includes(machine);
  const wanted = new URLSearchParams(location.search).get("outcome") ?? "";
  if (outcome && OUTCOMES.includes(wanted)) outcome.value = wanted;
  if (known && machine !== settings.reference) {
    select.value = machine;
    keep("machine", machine, false);
    showMachine(machine);
  } else {
    filterClaims();
    showFits();
  }
  if (chosen("gpu")) chooseKept?.();
}

start();
// A page brought back from memory as it was: the choice may have changed on another since.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  if (select) select.value = settings.reference;
  showMachine(settings.reference).then(start);
});
