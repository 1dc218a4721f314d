// A model's dimensions from what a reader pastes: a config.json, or only those of its entries that count.

// What configurations call a dimension; GPT-2 has names of its own.
const NAMES = {
  hidden: ["hidden_size", "n_embd", "d_model", "dim"],
  layers: ["num_hidden_layers", "n_layer", "num_layers", "n_layers"],
  heads: ["num_attention_heads", "n_head", "num_heads", "n_heads"],
  vocabulary: ["vocab_size"],
};
// Of those that a configuration may leave out.
const MORE_NAMES = {
  groups: ["num_key_value_heads"],
  head: ["head_dim"],
  intermediate: ["intermediate_size", "n_inner", "ffn_dim"],
};
/** What most configurations call each dimension. */
export const CONFIG_NAMES = Object.fromEntries(Object.entries({ ...NAMES, ...MORE_NAMES }).map(([name, names]) => [name, names[0]]));
const ENCODERS = /bert|roberta|electra|mpnet|deberta/;

const EXPERTS = ["num_local_experts", "num_experts", "n_routed_experts"];

const first = (config, names) => names.map((name) => config[name]).find((value) => Number.isFinite(value) && value >= 1);

/** What `config` is most like: an encoder, a GPT-2, or a decoder as Llama is one. */
function kindOf(config) {
  const type = `${config.model_type ?? ""} ${(config.architectures ?? []).join(" ")}`.toLowerCase();
  if (ENCODERS.test(type)) return "encoder";
  return /gpt2|gpt_bigcode|\bopt\b/.test(type) || "n_embd" in config ? "gpt" : "decoder";
}

/** The type of the weights, as `text` says it: "bfloat16", say; undefined if it says none. */
export function readDtype(text) {
  try {
    const config = JSON.parse(text);
    return config?.dtype ?? config?.torch_dtype;
  } catch {
    return undefined;
  }
}

/** The kind of model, whether its embeddings are tied, its family and its dimensions, as `text` says them; or the problem, and the names it lacks. */
export function readDimensions(text) {
  let config;
  try {
    config = JSON.parse(text);
  } catch {
    return { problem: "no_json" };
  }
  if (config === null || typeof config !== "object" || Array.isArray(config)) return { problem: "no_json" };
  config = { ...config, ...(config.text_config ?? {}) };
  if (config.is_encoder_decoder || EXPERTS.some((name) => config[name] > 1)) return { problem: "kind" };
  const dimensions = Object.fromEntries(Object.entries(NAMES).map(([name, names]) => [name, first(config, names)]));
  const missing = Object.keys(NAMES).filter((name) => dimensions[name] === undefined);
  if (missing.length) return { problem: "missing", names: missing.map((name) => NAMES[name][0]).join(", ") };
  const { hidden, heads } = dimensions;
  const kind = kindOf(config);
  const groups = first(config, MORE_NAMES.groups) ?? heads;
  const tied = Boolean(config.tie_word_embeddings);
  return {
    kind,
    tied,
    family: kind === "decoder" ? `decoder${groups === heads ? "-full" : ""}${tied ? "-tied" : ""}` : kind,
    dimensions: {
      ...dimensions,
      groups,
      head: first(config, MORE_NAMES.head) ?? hidden / heads,
      intermediate: first(config, MORE_NAMES.intermediate) ?? 4 * hidden,
    },
  };
}
