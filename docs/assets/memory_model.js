// Bytes of a training step or of a generation, from coefficients that the predictor derived: sums of monomials.
// `calculate` in scripts/benchbook/calculator/memory_model.py computes the same; a test holds the two together.

// Tokens whose logits are computed at once for DPO and GRPO.
const TILE = 4096;
export const GIB = 2 ** 30;
export const PARTS = ["weights", "gradients", "optimizer_states", "activations", "copies", "cache", "temporary", "workspaces"];

/** What gives a sum its value at `point`: places of terms and their factors, one after the other. */
function reader(coefficients, point) {
  const terms = coefficients.terms.map((powers) =>
    powers.reduce((product, power, place) => product * point[coefficients.variables[place]] ** power, 1));
  return (pairs = []) => {
    let sum = 0;
    for (let place = 0; place < pairs.length; place += 2) sum += terms[pairs[place]] * pairs[place + 1];
    return sum;
  };
}

/** What a setup is looked up by: the choices that change the sequence of allocations. */
export function key(setup) {
  const words = [setup.precision, ...(adapts(setup) ? [setup.method] : []), setup.attention];
  if (setup.mode === "training" && setup.objective !== "supervised") words.push(setup.objective);
  else if (setup.mode === "training" && setup.chunked) words.push("chunked");
  if (setup.mode === "training" && setup.checkpointing) words.push("checkpointing");
  if (setup.mode === "training" && setup.accumulation > 1) words.push("accumulation");
  return words.join(" ");
}

/** What the evaluation of a setup is looked up by; without chunks, also what is generated before its steps. */
const evaluationKey = (setup) =>
  [setup.precision, ...(adapts(setup) ? [setup.method] : []), setup.attention, ...(setup.chunked ? ["chunked"] : [])].join(" ");

/** The variables of a step with so many samples. */
function point(coefficients, setup, dimensions, batch) {
  const head = coefficients.head ?? [dimensions.hidden, dimensions.vocabulary];
  const chunk = setup.objective === "dpo" ? Math.min(2 * batch * setup.sequence, TILE)
    : setup.objective === "grpo" ? Math.min(batch * setup.completion, TILE)
    : setup.chunked ? rowsOfAChunk(batch * setup.sequence, ...head) : 0;
  return { ...dimensions, batch, sequence: setup.sequence, completion: setup.completion, rank: setup.rank, chunk };
}

/** The moment of a training step that holds the most on each GPU: its name, its bytes by part, and their sum. */
export function training(coefficients, setup, dimensions = {}) {
  const pairs = setup.objective === "dpo";
  const read = reader(coefficients, point(coefficients, setup, dimensions, setup.batch));
  const width = widthOf(setup);
  const optimizer = coefficients.optimizers[optimizerKey(setup, width)];
  const weights = read(coefficients.weights[adapts(setup) ? `${width} ${setup.method}` : width]);
  const states = read(optimizer.states);
  // The model that it is compared with: with adapters, the same one.
  const fixed = { weights: weights * (pairs && !adapts(setup) ? 2 : 1), optimizer_states: states };
  const units = { root: read(coefficients.units.root), layer: read(coefficients.units.layer) };
  // Where weights are gathered for it, a step in 16 bits needs no autocast: they come in 16 bits.
  const computed = gathers(setup) && setup.precision !== "fp32" ? { ...setup, precision: "bf16" } : setup;
  const moments = coefficients.training[key(computed)].map((moment) => {
    const parts = { ...Object.fromEntries(PARTS.map((name) => [name, read(moment[name])])), ...fixed };
    if (moment.at === "step") parts.temporary += read(optimizer.temporary);
    return { at: moment.at, parts };
  });
  const step = moments.at(-1);
  if (setup.objective === "grpo") {
    // All batches of a step at once.
    const asked = point(coefficients, setup, dimensions, setup.batch * setup.accumulation);
    const found = coefficients.generation[evaluationKey({ ...setup, chunked: false })];
    const lengths = { prefill: setup.sequence - setup.completion, decode: setup.sequence - 1 };
    moments.push(...generated(coefficients, found, asked, lengths, { ...fixed, workspaces: step.parts.workspaces }));
  }
  if (setup.evaluation && setup.objective === "supervised") {
    const evaluated = reader(coefficients, point(coefficients, setup, dimensions, setup.evaluation));
    for (const moment of coefficients.evaluation[evaluationKey(computed)]) {
      const parts = Object.fromEntries(PARTS.map((name) => [name, evaluated(moment[name])]));
      moments.push({ at: "evaluation", parts: { ...parts, weights, optimizer_states: states, workspaces: step.parts.workspaces } });
    }
  }
  // The step's gradients are all that are exchanged: those of adapters, or as many as there are weights.
  const exchanged = adapts(setup) ? step.parts.gradients : weights;
  return largest(moments.map((moment) => shard(moment, setup, units, exchanged)));
}

/** The moment of a generation that holds the most: while the prompt is read, or in the last pass for a new token. */
export function inference(coefficients, setup, dimensions = {}) {
  const lengths = { prefill: setup.sequence, decode: setup.sequence + setup.tokens - 1 };
  const asked = { ...dimensions, batch: setup.batch, sequence: setup.sequence, completion: 0, chunk: 0, rank: 0 };
  const weights = reader(coefficients, asked)(coefficients.weights[setup.precision]);
  return largest(generated(coefficients, coefficients.inference[key(setup)], asked, lengths, { weights }));
}

/** The moments of a generation: of its prompt and of its last token, so many tokens long, beside what is kept in other parts. */
const generated = (coefficients, moments, asked, lengths, kept) =>
  Object.entries(lengths).flatMap(([at, sequence]) => {
    const read = reader(coefficients, { ...asked, sequence });
    return moments[at].map((moment) => ({ at, parts: { ...Object.fromEntries(PARTS.map((name) => [name, read(moment[name])])), ...kept } }));
  });

/** How many tokens the kernel of a loss by chunks takes at once; `rows_of_a_chunk` in Python. */
function rowsOfAChunk(tokens, hidden, vocabulary) {
  const parts = Math.ceil(vocabulary / hidden);
  return Math.min(tokens, 2 ** Math.ceil(Math.log2(Math.ceil(tokens / parts))));
}

/** What an optimizer is looked up by; of the states of adapters, none lie in pages. */
const optimizerKey = (setup, width) =>
  adapts(setup) ? `lora ${setup.optimizer.replace("paged_", "")}` : `${width} ${setup.optimizer}`;

/** The bytes of states on each GPU that the driver may move to the machine's memory. */
export function paged(coefficients, setup, dimensions = {}) {
  if (setup.mode !== "training" || adapts(setup) || !setup.optimizer.startsWith("paged_")) return 0;
  const read = reader(coefficients, point(coefficients, setup, dimensions, setup.batch));
  const states = (optimizer) => read(coefficients.optimizers[optimizerKey({ ...setup, optimizer }, widthOf(setup))].states);
  const bytes = states(setup.optimizer.replace("paged_", "")) - states(setup.optimizer);
  return setup.sharding === "ddp" ? bytes : bytes / setup.gpus;
}

/** In what the weights that are trained, or lie beside adapters, are kept. */
const widthOf = (setup) => (setup.precision === "bf16" ? "bf16" : "fp32");

const adapts = (setup) => setup.mode === "training" && setup.method !== "full";

const gathers = (setup) => setup.gpus > 1 && ["zero2", "zero3"].includes(setup.sharding);

/** What of a moment each GPU holds when several train together. */
function shard({ at, parts }, setup, units, exchanged) {
  if (setup.gpus === 1) return { at, parts };
  const shared = { ...parts };
  if (!gathers(setup)) {
    // The buckets that gradients are exchanged in: as large as they, and kept.
    shared.temporary += exchanged;
    if (setup.sharding === "zero1") shared.optimizer_states /= setup.gpus;
    return { at, parts: shared };
  }
  const size = setup.precision === "fp32" ? 4 : 2;
  // Gradients are kept in the precision of the weights that they belong to.
  if (setup.precision === "bf16_autocast") shared.gradients *= 2;
  for (const name of ["weights", "gradients", "optimizer_states"]) shared[name] /= setup.gpus;
  if (at === "step") {
    shared.temporary /= setup.gpus;
  } else {
    const whole = parts.weights / (setup.precision === "bf16" ? 2 : 4);
    shared.copies = size * (setup.sharding === "zero2" ? whole : units.root + 2 * units.layer);
    if (at === "backward") shared.temporary += size * (units.root + units.layer);
  }
  return { at, parts: shared };
}

function largest(moments) {
  const total = (moment) => PARTS.reduce((sum, name) => sum + moment.parts[name], 0);
  const found = moments.reduce((most, one) => (total(one) > total(most) ? one : most));
  return { ...found, total: total(found) };
}

/** What a GPU must hold for `bytes` of tensors: 5 % and 1 GiB more, for fragments and the context. */
export const needed = (bytes) => bytes * 1.05 + GIB;

/** The largest whole number up to `limit` that `fits`, 0 if none does; what does not fit does not fit larger either. */
export function largestThat(fits, limit = 65536) {
  let low = 0;
  let high = 1;
  while (high <= limit && fits(high)) [low, high] = [high, high * 2];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (middle <= limit && fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}
