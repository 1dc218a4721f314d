// The page of the memory calculator: what its form says, in the address and on the page.

import { GIB, PARTS, inference, key, largestThat, needed, paged, training } from "./memory_model.js";
import { CONFIG_NAMES, readDimensions, readDtype } from "./dimensions.js";
import { gpuField, hasTensorCores, isOlder, remarkOnOlder } from "./gpu_field.js";
import { picture } from "./picture.js";

const settings = JSON.parse(document.getElementById("calc-settings").textContent);
const words = settings.strings;
const form = document.getElementById("calc");
const fields = form.elements;
const at = (id) => document.getElementById(`calc-${id}`);
const OWN = "own";
const BETWEEN = words.between_sentences;
const LEAST = 0.001; // the smallest share that is told
// What a batch of an objective counts, where that is not samples.
const COUNTED = { dpo: "pairs", grpo: "completions" };
// What the address says besides the choices that have a default in the form.
const FLAGS = ["checkpointing", "chunked"];
const NUMBERS = ["batch", "sequence", "completion", "tokens", "accumulation", "evaluation", "gpus", "rank"];
const CHOICES = ["model", "mode", "method", "objective", "precision", "optimizer", "attention", "sharding"];
const defaults = Object.fromEntries([...CHOICES, ...NUMBERS].map((name) => [name, fields[name].value]));
const loaded = new Map();

// Numbers and texts

const whole = new Intl.NumberFormat(`${settings.language}-u-nu-latn`, { maximumFractionDigits: 0 });
const rounded = new Intl.NumberFormat(`${settings.language}-u-nu-latn`, { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
const finer = new Intl.NumberFormat(`${settings.language}-u-nu-latn`, { minimumSignificantDigits: 5, maximumSignificantDigits: 5 });
const percent = new Intl.NumberFormat(`${settings.language}-u-nu-latn`, { style: "percent", maximumSignificantDigits: 2 });

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  element.append(...children);
  return element;
}

/** Text that neither turns around in right-to-left text nor turns its neighbours around. */
const isolated = (text) => make("bdi", { dir: "ltr" }, text);

const number = (value) => isolated((Number.isInteger(value) || value >= 100 ? whole : rounded).format(value));

function memory(bytes, digits = rounded) {
  const [unit, size] = bytes >= GIB ? ["GiB", GIB] : bytes >= 2 ** 20 ? ["MiB", 2 ** 20] : ["KiB", 2 ** 10];
  const value = bytes / size;
  const text = (Number.isInteger(value) || (value >= 100 && digits === rounded) ? whole : digits).format(value);
  return make("data", { value: Math.round(bytes), dir: "ltr" }, `${text}\u00a0${unit}`);
}

/** The text `name` of the page's language, with nodes in its holes. */
function text(name, holes = {}) {
  const shown = document.createDocumentFragment();
  for (const part of words[name].split(/(\{[a-z]+\})/)) {
    const hole = /^\{([a-z]+)\}$/.exec(part);
    shown.append(hole ? holes[hole[1]] ?? part : part);
  }
  return shown;
}

// What is kept in the address

function readAddress() {
  const query = new URLSearchParams(location.search);
  for (const name of [...CHOICES, ...NUMBERS]) {
    const value = query.get(name);
    if (value === null) continue;
    const known = NUMBERS.includes(name) ? inRange(fields[name], Number(value))
      : [...(fields[name].options ?? fields[name])].some((one) => one.value === value);
    if (known) fields[name].value = value;
  }
  for (const name of FLAGS) fields[name].checked = query.get(name) === "1";
  if (query.has("config")) fields.config.value = query.get("config");
}

function writeAddress() {
  const address = new URL(location.href);
  const put = (name, value) => {
    if (value === (defaults[name] ?? "")) address.searchParams.delete(name);
    else address.searchParams.set(name, value);
  };
  for (const name of CHOICES) put(name, fields[name].value);
  // A precision that nobody chose follows the model, also where the page is opened anew.
  if (chosePrecision) address.searchParams.set("precision", fields.precision.value);
  else address.searchParams.delete("precision");
  for (const name of NUMBERS) put(name, String(count(name)));
  for (const name of FLAGS) put(name, fields[name].checked ? "1" : "");
  put("config", fields.model.value === OWN ? compact(fields.config.value) : "");
  if (address.href !== location.href) history.replaceState(history.state, "", address);
}

/** What leads to this very setup, whatever GPU is chosen where it is opened. */
function sharedLink() {
  const address = new URL(location.href);
  address.searchParams.set("precision", fields.precision.value);
  address.hash = "";
  return address.href;
}

function compact(json) {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return json;
  }
}

let gpu;
/** What the reader's GPU holds, in bytes; undefined if they chose none. */
const room = () => gpu?.bytes;

const inRange = ({ min, max }, value) => value >= Number(min) && value <= Number(max);

/** The whole number in a field, within its limits; the last good one while the field is being changed. */
function count(name) {
  const value = Number(fields[name].value);
  if (fields[name].value && inRange(fields[name], value)) fields[name].dataset.good = Math.floor(value);
  return Number(fields[name].dataset.good ?? defaults[name]);
}

/** The fields in which stands what is not computed with. */
const unused = () => NUMBERS.filter((name) => !at(name).hidden && !(fields[name].value && Number(fields[name].value) === count(name)));

/** Whether several GPUs can divide what the form asks for: of adapters and of other objectives, replicas alone are computed. */
const divides = () => fields.method.value === "full" && fields.objective.value === "supervised";

/** Of a sequence, at least one token is the prompt's. */
const completion = () => Math.max(1, Math.min(count("completion"), count("sequence") - 1));

function setup() {
  return {
    mode: fields.mode.value,
    method: fields.method.value,
    objective: fields.objective.value,
    precision: fields.precision.value,
    optimizer: fields.optimizer.value,
    attention: fields.attention.value,
    checkpointing: fields.checkpointing.checked,
    chunked: fields.chunked.checked && !fields.chunked.disabled,
    sharding: divides() ? fields.sharding.value : "ddp",
    ...Object.fromEntries(NUMBERS.map((name) => [name, count(name)])),
    completion: completion(),
  };
}

// Coefficients

async function load(name) {
  if (!loaded.has(name)) {
    const answer = fetch(`${settings.folder}${name}.json`).then((found) => {
      if (!found.ok) throw new Error(String(found.status));
      return found.json();
    });
    answer.catch(() => loaded.delete(name));
    loaded.set(name, answer);
  }
  return loaded.get(name);
}

/** The coefficients and dimensions that the form asks for; null, with the reason beside it, if it asks for none. */
async function chosen() {
  const own = fields.model.value === OWN;
  at("own").hidden = !own;
  const experts = fields.model.selectedOptions[0].dataset.kind === "mixture";
  if (!own) return { coefficients: await load(`models/${fields.model.value}`), dimensions: {}, experts };
  const read = readDimensions(fields.config.value);
  fields.config.setAttribute("aria-invalid", String(Boolean(read.problem)));
  at("config-said").replaceChildren(
    read.problem ? text(`calc_config_${read.problem}`, { names: isolated(read.names) })
      : text("calc_config_read", { family: isolated(settings.families[read.kind]) }));
  return read.problem ? null : { coefficients: await load(`families/${read.family}`), dimensions: read.dimensions, vision: read.vision };
}

/** The peak of a setup; null where the model has no such setup. */
function peak({ coefficients, dimensions }, asked) {
  const compute = asked.mode === "inference" ? inference : training;
  return coefficients[asked.mode]?.[key(asked)] ? compute(coefficients, asked, dimensions) : null;
}

const fitting = (model, asked, space) => {
  const found = peak(model, asked);
  return found !== null && needed(found.total) <= space;
};

// What the page shows

/** The choices that a setup is looked up by. */
function choicesOf(name) {
  const [precision, ...rest] = name.split(" ");
  const method = ["lora", "qlora"].includes(rest[0]) ? rest.shift() : "full";
  return { precision, method, attention: rest[0], objective: ["dpo", "grpo"].find((one) => rest.includes(one)) ?? "supervised" };
}

/** The precision of a run until a reader says one: as the weights are published, if the GPU can train in that.
 *
 * Weights are served, and adapters put beside them, in 16 bits. No scaled loss takes gradients in float16, so
 * such weights train in fp32 under autocast, which is also what a GPU without bf16 can do for any model.
 */
function usualPrecision() {
  if (fields.mode.value === "inference") return "bf16";
  return precisionFor(fields.method.value, fields.model.value === OWN ? readDtype(fields.config.value) : fields.model.selectedOptions[0].dataset.dtype);
}

/** The precision in which weights train that are published in another one. */
function precisionFor(method, published) {
  if (method !== "full") return "bf16";
  if (!["bfloat16", "float16"].includes(published)) return defaults.precision;
  if (isOlder(gpu)) return hasTensorCores(gpu) ? "bf16_autocast" : "fp32";
  return published === "bfloat16" ? "bf16" : "bf16_autocast";
}

/** The choice of 16 bits for the weights themselves: bf16, or fp16 of the same size where a GPU computes no bf16. */
const half = () => [...fields.precision.options].find((one) => one.value === "bf16");

/** Leave of the form what the model and the other choices leave to choose. */
function showForm({ coefficients }) {
  const has = (mode) => Object.keys(coefficients[mode] ?? {}).length > 0;
  for (const mode of fields.mode) mode.disabled = !has(mode.value);
  if (!has(fields.mode.value)) fields.mode.value = "training";
  const mode = fields.mode.value;
  for (const part of form.querySelectorAll("[data-mode]")) part.hidden = part.dataset.mode !== mode;
  const known = Object.keys(coefficients[mode]).map(choicesOf);
  const among = { training: ["method", "precision", "objective", "attention"], inference: ["precision", "attention"] };
  among[mode].forEach((name, place, names) => {
    const options = [...fields[name].options];
    const alike = known.filter((one) => names.slice(0, place).every((other) => one[other] === fields[other].value));
    for (const option of options) option.disabled = !alike.some((one) => one[name] === option.value);
    if (name === "precision" && !chosePrecision) fields.precision.value = usualPrecision();
    if (fields[name].selectedOptions[0].disabled) fields[name].value = options.find((one) => !one.disabled).value;
  });
  const objective = mode === "training" ? fields.objective.value : "supervised";
  const generates = objective === "grpo";
  at("batch").querySelector("label").textContent = words[`calc_${COUNTED[objective] ?? "batch"}`];
  at("completion").hidden = !generates;
  at("evaluation").hidden = mode === "inference" || objective !== "supervised";
  // Setups that differ in nothing else: where there is one, the loss can be made by chunks.
  fields.chunked.disabled = objective !== "supervised" || !coefficients.training?.[key({ ...setup(), mode: "training", chunked: true })];
  const adapts = mode === "training" && fields.method.value !== "full";
  at("rank").hidden = !adapts;
  const together = mode === "training" && count("gpus") > 1;
  at("sharding").hidden = !together || !divides();
  at("sequence").querySelector("label").textContent = words[`calc_${mode === "inference" ? "prompt" : generates ? "prompt_and_completion" : "sequence"}`];
  const wrong = unused();
  for (const name of NUMBERS) {
    const { min, max } = fields[name];
    fields[name].setAttribute("aria-invalid", String(wrong.includes(name)));
    at(`${name}-said`).replaceChildren(wrong.includes(name)
      ? text("calc_not_counted", { least: number(Number(min)), most: number(Number(max)), used: number(count(name)) }) : "");
  }
  half().text = half().value;
  if (isOlder(gpu) && (mode === "inference" || fields.method.value !== "full")) half().text = "fp16";
  const length = count("sequence") + (mode === "inference" ? count("tokens") : 0);
  const { positions, window } = coefficients;
  at("said").replaceChildren(
    generates && completion() < count("completion") ? text("calc_completion_too_long", { used: number(completion()) })
      : positions && length > positions ? text("calc_too_long", { most: number(positions) })
      : window && length > window ? text("calc_window", { most: number(window) }) : "");
  if (together && !divides()) at("said").append(at("said").textContent ? BETWEEN : "", whyReplicas(objective));
}

/** Why no sharding can be chosen, with a link to more of it. */
function whyReplicas(objective) {
  const what = objective === "supervised" ? { lora: "LoRA", qlora: "QLoRA" }[fields.method.value] : objective.toUpperCase();
  return make("a", { href: "#several-gpus" }, text("calc_replicas", { what: isolated(what) }));
}

/** No answer is better than the last one: it was to another question. */
function showNothing() {
  at("result").hidden = true;
  at("verdict").dataset.fits = "";
  at("verdict").replaceChildren(words.calc_nothing);
  at("brief").replaceChildren(words.calc_nothing);
}

function showResult(found, asked, model) {
  const space = room();
  const wanted = needed(found.total);
  const said = [text("calc_peak", { peak: memory(found.total), moment: words[`calc_at_${found.at}`] }), BETWEEN];
  if (space === undefined) {
    const smallest = settings.sizes.find(({ bytes }) => wanted <= bytes)?.gb;
    said.push(text("calc_needed", { needed: memory(wanted) }), BETWEEN);
    said.push(smallest ? text("calc_holds", { size: isolated(`${smallest}\u00a0GB`) }) : text("calc_holds_none"));
  } else {
    const most = largestThat((batch) => fitting(model, { ...asked, batch }, space));
    if (tells(wanted)) said.unshift(mark(wanted <= space, "strong"), " ");
    // What differs must not read alike.
    const digits = memory(wanted).textContent === memory(space).textContent ? finer : rounded;
    said.push(text("calc_needed_of", { needed: memory(wanted, digits), room: memory(space, digits) }), BETWEEN);
    // Where the evaluation is too large, the batch of the training is not to blame.
    if (most || found.at !== "evaluation") said.push(most ? text(counting("calc_largest", asked), { batch: number(most) }) : text(counting("calc_largest_none", asked)));
  }
  at("verdict").dataset.fits = space !== undefined && tells(wanted) ? wanted <= space : "";
  // At first sight a second model takes more.
  if (asked.mode === "training" && asked.objective === "dpo" && peak(model, { ...asked, objective: "supervised" })?.total > found.total) {
    said.push(BETWEEN, words.calc_dpo_less);
  }
  const movable = paged(model.coefficients, asked, model.dimensions);
  if (movable) said.push(BETWEEN, text("calc_paged", { size: memory(movable) }));
  if (model.experts && asked.mode === "training" && asked.method !== "full") said.push(BETWEEN, make("a", { href: "#limits" }, words.calc_no_experts));
  if (model.vision) said.push(BETWEEN, make("a", { href: "#limits" }, words.calc_no_vision));
  for (const name of unused()) said.push(BETWEEN, text("calc_unused", { field: at(name).querySelector("label").textContent, used: number(count(name)) }));
  if (isOlder(gpu)) said.push(remarkOnOlder(gpu, words));
  if (space !== undefined && wanted > space) {
    const remedies = document.getElementById("change-first");
    said.push(BETWEEN, make("a", { href: "#change-first" }, remedies.firstChild.textContent.trim()));
  }
  at("verdict").replaceChildren(...said);
  showBrief(wanted, space);
  showParts(found, wanted, space);
}

/** The name of a text on a batch, in the words for what it counts. */
const counting = (name, { mode, objective }) => (mode === "training" && COUNTED[objective] ? `${name}_${COUNTED[objective]}` : name);

/** What the system has a share in may not hold what it could: there only what cannot fit is told. */
const tells = (wanted) => !gpu.shared || wanted > room();

/** Whether it fits, as a sign and a word. */
function mark(fits, name = "span") {
  const said = fits ? `✓ ${words.fits}` : `✗ ${words.fits_not}`;
  return make(name, { class: fits ? "bb-fits" : "bb-fits-not" }, make("bdi", {}, said));
}

/** The verdict in a line, at the edge of the screen while the whole one is out of sight. */
function showBrief(wanted, space) {
  const sizes = [wanted, ...(space === undefined ? [] : [space])].map((bytes) => memory(bytes).textContent);
  const told = space !== undefined && tells(wanted) ? [mark(wanted <= space, "strong"), " · "] : [];
  at("brief").replaceChildren(...told, isolated(sizes.join(" / ")));
}

// All but a fraction of a pixel, and not below the page's header.
new IntersectionObserver((seen) => at("brief").classList.toggle("calc-idle", seen.at(-1).intersectionRatio > 0.97),
  { threshold: [0, 0.97, 1], rootMargin: "-60px 0px 0px" }).observe(at("verdict"));

/** Of each model that readers ask for, the first method that this GPU has room for: what they may begin with. */
function showFitting() {
  const { setup: fixed, models } = settings.fitting;
  at("fitting").hidden = !gpu || gpu.shared || models.length === 0;
  if (at("fitting").hidden) return;
  if (!new URLSearchParams(location.search).has("model") || location.hash === "#calc-fitting") at("fitting").open = !closedFitting;
  at("fitting").querySelector("ul").replaceChildren(...models.map(({ model, title, peaks }) => {
    const found = Object.entries(peaks).map(([method, bytes]) => [method, bytes[precisionFor(method, "bfloat16")]])
      .find(([, bytes]) => needed(bytes) <= room());
    if (!found) return make("li", {}, isolated(title), words.colon, words.calc_fitting_none);
    const [method, bytes] = found;
    const query = new URLSearchParams({ model, ...(method === "full" ? {} : { method }), ...fixed, gpu: gpu.id });
    const named = [...fields.method.options].find((one) => one.value === method).text;
    return make("li", {}, make("a", { href: `?${query}` }, isolated(title), words.colon, make("bdi", {}, named)), " ", memory(needed(bytes)));
  }));
  if (sought) at("fitting").scrollIntoView();
  sought = false;
}

// What an address leads to is there only now.
let sought = location.hash === "#calc-fitting";
let closedFitting = false;
at("fitting").querySelector("summary").addEventListener("click", () => (closedFitting = at("fitting").open));

function showParts(found, wanted, space) {
  const parts = PARTS.map((name) => [name, found.parts[name]]).filter(([, bytes]) => bytes >= 1024);
  parts.push(["allowance", wanted - found.total]);
  const scale = Math.max(wanted, space ?? 0);
  const share = (bytes) => `${(100 * bytes) / scale}%`;
  const bar = parts.map(([name, bytes]) => make("span", { "data-part": name, style: `inline-size: ${share(bytes)}` }));
  // Where the GPU ends, if that is inside the bar.
  if (space < wanted) bar.push(make("i", { style: `inset-inline-start: ${share(space)}` }));
  at("bar").replaceChildren(...bar);
  const row = ([name, bytes]) => make("tr", { "data-part": name },
    make("th", { scope: "row" }, words[`calc_${name}`]),
    make("td", {}, memory(bytes)),
    make("td", {}, isolated(bytes / wanted < LEAST ? `< ${percent.format(LEAST)}` : percent.format(bytes / wanted))));
  at("parts").replaceChildren(...[...parts, ["sum", wanted]].map(row));
}

// To share

/** The text of a node, in which characters isolate what runs from left to right. */
function plain(node) {
  const inside = node.childNodes.length ? [...node.childNodes].map(plain).join("") : node.nodeName === "#text" ? node.data : "";
  return node.dir === "ltr" ? `\u2066${inside}\u2069` : inside;
}

/** What the form asks, in words: its choices and numbers with their labels, as they are seen. */
function inWords() {
  const shown = [...form.querySelectorAll("fieldset p:not([hidden])")].filter((one) => one.checkVisibility());
  return shown.flatMap((one) => {
    const field = one.querySelector("select, input:not(#calc-gpu)");
    const label = one.querySelector("label")?.textContent.trim();
    if (!field?.name || field.type === "radio" || field === fields.model) return [];
    if (field.type === "checkbox") return field.checked ? [label] : [];
    return [`${label}${words.colon}${field.selectedOptions?.[0].text ?? field.value}`];
  });
}

/** The reader's own dimensions, by the names that configurations have for them, and their family; none of a listed model. */
function ownDimensions() {
  if (fields.model.value !== OWN) return [];
  const { dimensions, tied } = readDimensions(fields.config.value);
  const named = Object.entries(dimensions).map(([name, value]) => `${CONFIG_NAMES[name]} ${value}`);
  return [...named, ...(tied ? ["tie_word_embeddings"] : [])].map((one) => `\u2066${one}\u2069`).concat(plain(at("config-said")));
}

async function share() {
  const rows = [...at("parts").rows];
  const spans = [...at("bar").querySelectorAll("span")];
  const drawn = await picture({
    title: fields.model.selectedOptions[0].text,
    words: [...form.mode].filter((one) => one.checked).map((one) => one.parentElement.textContent.trim()).concat(inWords(), ownDimensions(), gpu ? [`\u2066${fields["calc-gpu"].value}\u2069`] : []),
    said: [...at("verdict").querySelectorAll("strong")].map(plain).concat([...at("verdict").childNodes].filter((one) => !["STRONG", "A"].includes(one.nodeName)).map(plain).join("").trim()),
    parts: rows.map((row, place) => ({
      name: row.cells[0].textContent,
      value: plain(row.cells[1]),
      color: !spans[place] ? "transparent" : spans[place].dataset.part === "allowance" ? getComputedStyle(at("bar")).borderTopColor
        : getComputedStyle(spans[place]).backgroundColor,
      share: spans[place] ? parseFloat(spans[place].style.inlineSize) / 100 : undefined,
    })),
    link: sharedLink(),
    direction: getComputedStyle(form).direction,
  });
  const link = make("a", { href: URL.createObjectURL(drawn), download: "memory.png" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

at("picture").addEventListener("click", share);

// What to change first

const halves = (value) => Math.max(1, Math.floor(value / 2));

/** Each change that would leave the setup another one, the cheapest for the reader first. */
function changes(asked, space, model) {
  const all = [];
  const offer = (name, change, holes = {}) => all.push({ name, change, holes });
  const training = asked.mode === "training";
  const whole = training && asked.method === "full";
  const divisible = whole && asked.objective === "supervised";
  // What several GPUs do with adapters is computed for replicas alone.
  const adapters = { precision: "bf16", attention: "sdpa", sharding: "ddp" };
  if (asked.attention === "eager") offer("sdpa", { attention: "sdpa" });
  if (training && !asked.chunked) offer("chunked", { chunked: true });
  if (training && asked.batch > 1) {
    // The same samples per step: the largest part of them that fits, or the next smaller one.
    const samples = asked.batch * asked.accumulation;
    const parts = [];
    for (let batch = asked.batch - 1; batch >= 1; batch--) {
      if (samples % batch === 0) parts.push({ batch, accumulation: samples / batch });
    }
    const change = space === undefined ? parts[0] : parts.find((part) => fitting(model, { ...asked, ...part }, space)) ?? parts.at(-1);
    offer(counting("accumulate", asked), change, { batch: change.batch, times: change.accumulation });
  }
  if (!training && asked.batch > 1) offer("batch", { batch: halves(asked.batch) }, { batch: halves(asked.batch) });
  if (training && asked.evaluation > 1) offer("evaluation", { evaluation: halves(asked.evaluation) }, { batch: halves(asked.evaluation) });
  if (training && !asked.checkpointing) offer("checkpointing", { checkpointing: true });
  if (divisible && asked.gpus > 1 && asked.sharding !== "zero3") offer("zero3", { sharding: "zero3" });
  if (whole && asked.precision === "fp32") offer("autocast", { precision: "bf16_autocast" });
  if (training && asked.optimizer.startsWith("adamw_") && !asked.optimizer.endsWith("adamw_8bit")) offer("adamw_8bit", { optimizer: "adamw_8bit" });
  if (training && asked.optimizer !== "adafactor" && !asked.optimizer.startsWith("paged") && !asked.optimizer.startsWith("sgd")) offer("adafactor", { optimizer: "adafactor" });
  // Weights that are trained themselves cannot be fp16, and older GPUs have no bf16.
  const precision = isOlder(gpu) ? "fp16" : "bf16";
  if (asked.precision !== "bf16" && !(whole && isOlder(gpu))) offer("bf16", { precision: "bf16" }, { precision });
  if (whole) offer("lora", { ...adapters, method: "lora" }, { rank: asked.rank, precision });
  if (training && asked.method !== "qlora") offer("qlora", { ...adapters, method: "qlora" }, { rank: asked.rank });
  if (divisible) {
    const more = moreGpus(asked);
    const enough = more.find((one) => space !== undefined && fitting(model, { ...asked, ...one.change }, space));
    if (more.length > 0) all.push(enough ?? more[0]);
  }
  if (asked.sequence > 1) {
    const shorter = { sequence: halves(asked.sequence), ...(asked.objective === "grpo" ? { completion: halves(asked.completion) } : {}) };
    offer("sequence", shorter, { length: shorter.sequence });
  }
  return all.filter(({ change }) => peak(model, { ...asked, ...change }) !== null);
}

/** Everything sharded over so many GPUs, the fewest first. */
const moreGpus = (asked) => [2, 4, 8, 16, 32, 64].filter((gpus) => gpus > asked.gpus)
  .map((gpus) => ({ name: "gpus", change: { gpus, sharding: "zero3" }, holes: { count: gpus } }));

const addsGpus = ({ change }) => change.gpus !== undefined;

// So many changes are tried in all combinations; of more, those that come first are taken.
const COMBINED = 3;

/** As few changes as it takes to fit, the first in their order; null if all do not. */
function together(all, asked, space, model) {
  const merged = (taken) => Object.assign({}, ...taken.map((one) => one.change));
  // With adapters, weights are never divided: of all changes, either adapters or shardings are left out.
  const sharded = (one) => one.change.sharding === "zero3";
  const goTogether = (taken) => !taken.some((one) => one.change.method) || !taken.some(sharded);
  const enough = (taken) => goTogether(taken) && fitting(model, { ...asked, ...merged(taken) }, space);
  for (let count = 2; count <= COMBINED; count++) {
    const taken = combinations(all, count).find(enough);
    if (taken) return { taken, change: merged(taken) };
  }
  for (const some of [all.filter((one) => !sharded(one)), all.filter((one) => !one.change.method)]) {
    let taken = [];
    for (const one of some) {
      taken.push(one);
      if (!enough(taken)) continue;
      for (const early of taken) {
        const rest = taken.filter((other) => other !== early);
        if (enough(rest)) taken = rest;
      }
      return { taken, change: merged(taken) };
    }
  }
  return null;
}

/** Each choice of `count` of `all`, in their order. */
function combinations(all, count) {
  if (count === 0) return [[]];
  return all.flatMap((one, place) => combinations(all.slice(place + 1), count - 1).map((rest) => [one, ...rest]));
}

function showChanges(found, asked, model) {
  const space = room();
  const then = (change) => peak(model, { ...asked, ...change }).total;
  const fits = (one) => space !== undefined && needed(one.total) <= space;
  const all = changes(asked, space, model).map((one) => ({ ...one, names: [nameOf(one)], total: then(one.change) }));
  const offered = all.filter((one) => one.total < found.total);
  // What the same hardware can do comes first, also by several changes at once: no other has to be bought or rented.
  const here = offered.filter((one) => fits(one) && !addsGpus(one));
  const elsewhere = offered.filter((one) => fits(one) && addsGpus(one));
  const rows = [...here, ...elsewhere, ...offered.filter((one) => !fits(one))];
  if (space !== undefined && needed(found.total) > space && here.length === 0) {
    const same = all.filter((one) => !addsGpus(one));
    // Of other hardware as little as it takes.
    const more = elsewhere.length > 0 || same.length === all.length ? [] : moreGpus(asked);
    const both = [same, ...more.map((gpus) => [...same, gpus])].reduce((found, some) => found ?? together(some, asked, space, model), null);
    if (both) {
      const names = both.taken.flatMap((one, place) => [place ? words.comma : BETWEEN, nameOf(one)]);
      rows.unshift({ names: [words.calc_together, ...names], change: both.change, total: then(both.change) });
    }
  }
  at("offers").replaceChildren(...rows.map((one) => make("tr", {},
    make("th", { scope: "row" }, ...one.names),
    make("td", {}, memory(one.total), " ",
      make("span", { class: "bb-ratio", dir: "ltr" }, `\u2212${percent.format(1 - one.total / found.total)}`), " ",
      space !== undefined && tells(needed(one.total)) ? mark(fits(one)) : ""),
    make("td", {}, apply(one.change)))));
  at("changes").hidden = rows.length === 0;
  at("unchanged").hidden = rows.length > 0;
}

function nameOf({ name, holes }) {
  const filled = Object.fromEntries(Object.entries(holes).map(([hole, value]) => [hole, typeof value === "string" ? isolated(value) : number(value)]));
  const shown = text(`calc_change_${name}`, filled);
  return settings.links[name] ? make("a", { href: settings.links[name] }, shown) : shown;
}

function apply(change) {
  const button = make("button", { type: "button" }, words.calc_apply);
  button.addEventListener("click", async () => {
    // What a box says that cannot be chosen now is no part of what was promised.
    if (fields.chunked.disabled) fields.chunked.checked = false;
    for (const [name, value] of Object.entries(change)) {
      if (FLAGS.includes(name)) fields[name].checked = value;
      else fields[name].value = value;
    }
    if (change.precision && change.precision !== usualPrecision()) chosePrecision = true;
    await update();
    at("verdict").focus();
  });
  return button;
}

// Together

let turn = 0;
let chosePrecision = new URLSearchParams(location.search).has("precision");

async function update() {
  const mine = ++turn;
  let model;
  try {
    model = await chosen();
  } catch {
    at("result").hidden = false;
    at("verdict").replaceChildren(words.calc_failed);
    at("brief").replaceChildren(words.calc_failed);
    return;
  }
  if (mine !== turn) return; // the reader has changed something since
  writeAddress();
  if (model === null) return showNothing();
  showForm(model);
  const asked = setup();
  const found = peak(model, asked);
  if (found === null) return showNothing();
  at("result").hidden = false;
  at("link").dataset.copy = sharedLink();
  showResult(found, asked, model);
  showChanges(found, asked, model);
}

form.addEventListener("input", (event) => {
  if (event.target === fields.precision) chosePrecision = true;
  update();
});
form.addEventListener("submit", (event) => event.preventDefault());
const chooseKept = gpuField("calc-gpu", settings.gpus, words, (one, count) => {
  gpu = one;
  if (count && !at("gpus").hidden) fields.gpus.value = count;
  showFitting();
  update();
});
addEventListener("popstate", () => {
  readAddress();
  chooseKept();
});
readAddress();
chooseKept();
