// Bytes of a training step or of a generation, from coefficients that the predictor derived: sums of monomials.
// `evaluate` in scripts/benchbook/predictor/coefficients.py computes the same; a test holds the two together.

export const GIB = 2 ** 30;
export const PARTS = ["weights", "gradients", "optimizer_states", "activations", "copies", "cache", "temporary", "workspaces"];

/** A function that gives a sum of monomials its value at `point`. */
function reader(coefficients, point) {
  const terms = coefficients.terms.map((powers) =>
    powers.reduce((product, power, place) => product * point[coefficients.variables[place]] ** power, 1));
  return (sum = []) => sum.reduce((total, factor, place) => total + factor * terms[place], 0);
}

/** What a setup is looked up by: the choices that change the sequence of allocations. */
export function key(setup) {
  const words = [setup.precision, setup.attention];
  if (setup.mode === "training" && setup.checkpointing) words.push("checkpointing");
  if (setup.mode === "training" && setup.accumulation > 1) words.push("accumulation");
  return words.join(" ");
}

/** The moment of a training step that holds the most, on one GPU: its name, its bytes by part, and their sum. */
export function training(coefficients, setup, dimensions = {}) {
  const read = reader(coefficients, { ...dimensions, batch: setup.batch, sequence: setup.sequence });
  const width = setup.precision === "bf16" ? "bf16" : "fp32";
  const optimizer = coefficients.optimizers[`${width} ${setup.optimizer}`];
  const states = read(optimizer.states);
  const moments = coefficients.training[key(setup)].map((moment) => {
    const parts = Object.fromEntries(PARTS.map((name) => [name, read(moment[name])]));
    parts.weights = read(coefficients.weights[width]);
    parts.optimizer_states = states;
    if (moment.at === "step") parts.temporary += read(optimizer.temporary);
    return { at: moment.at, parts };
  });
  const units = { root: read(coefficients.units.root), layer: read(coefficients.units.layer) };
  return largest(moments.map((moment) => shard(moment, setup, units, width)));
}

/** The moment of a generation that holds the most: while the prompt is read, or in the last pass for a new token. */
export function inference(coefficients, setup, dimensions = {}) {
  const lengths = { prefill: setup.sequence, decode: setup.sequence + setup.tokens - 1 };
  const moments = Object.entries(lengths).flatMap(([at, sequence]) => {
    const read = reader(coefficients, { ...dimensions, batch: setup.batch, sequence });
    return coefficients.inference[key(setup)][at].map((moment) => {
      const parts = Object.fromEntries(PARTS.map((name) => [name, read(moment[name])]));
      return { at, parts: { ...parts, weights: read(coefficients.weights[setup.precision]) } };
    });
  });
  return largest(moments);
}

/** Where the weights, gradients and states of a moment lie when several GPUs train together. */
function shard({ at, parts }, setup, units, width) {
  const count = setup.gpus;
  const way = count > 1 ? setup.sharding : "none";
  const shared = { ...parts };
  if (way === "ddp" || way === "zero1") {
    // The buckets that gradients are exchanged in: as large as they, and kept.
    shared.temporary += parts.weights;
    if (way === "zero1") shared.optimizer_states /= count;
  } else if (way === "zero2" || way === "zero3") {
    const size = setup.precision === "fp32" ? 4 : 2;
    const gathered = way === "zero3" ? units.root + 2 * units.layer : parts.weights / (width === "bf16" ? 2 : 4);
    shared.weights /= count;
    shared.gradients /= count;
    shared.optimizer_states /= count;
    if (at === "forward" || at === "backward") {
      // What is gathered has the precision of the computation already.
      shared.copies = gathered * size;
      if (at === "backward") shared.temporary += (units.root + units.layer) * size;
    } else {
      shared.temporary /= count;
    }
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
