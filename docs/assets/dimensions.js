// A model's dimensions from what a reader pastes: a config.json, or only those of its entries that count.

// What configurations call a dimension; GPT-2 has names of its own.
const NAMES = {
  hidden: ["hidden_size", "n_embd", "d_model", "dim"],
  layers: ["num_hidden_layers", "n_layer", "num_layers", "n_layers"],
  heads: ["num_attention_heads", "n_head", "num_heads", "n_heads"],
  vocabulary: ["vocab_size"],
};
const ENCODERS = /bert|roberta|electra|mpnet|deberta/;

const first = (config, names) => names.map((name) => config[name]).find((value) => Number.isFinite(value) && value >= 1);

/** The family whose coefficients hold for `config`: an encoder, a GPT-2, or a decoder as Llama is one. */
function familyOf(config) {
  const type = `${config.model_type ?? ""} ${(config.architectures ?? []).join(" ")}`.toLowerCase();
  if (ENCODERS.test(type)) return "encoder";
  return /gpt2|gpt_bigcode|\bopt\b/.test(type) || "n_embd" in config ? "gpt2" : "decoder";
}

/** The family and dimensions that `text` says; or the problem with it, and the names that it lacks. */
export function readDimensions(text) {
  let config;
  try {
    config = JSON.parse(text);
  } catch {
    return { problem: "no_json" };
  }
  if (config === null || typeof config !== "object" || Array.isArray(config)) return { problem: "no_json" };
  config = { ...config, ...(config.text_config ?? {}) };
  const dimensions = Object.fromEntries(Object.entries(NAMES).map(([name, names]) => [name, first(config, names)]));
  const missing = Object.keys(NAMES).filter((name) => dimensions[name] === undefined);
  if (missing.length) return { problem: "missing", names: missing.map((name) => NAMES[name][0]).join(", ") };
  const { hidden, heads } = dimensions;
  const head = first(config, ["head_dim"]) ?? hidden / heads;
  const family = familyOf(config);
  const tied = config.tie_word_embeddings ?? family !== "decoder";
  return {
    family,
    dimensions: {
      ...dimensions,
      head,
      groups: first(config, ["num_key_value_heads"]) ?? heads,
      intermediate: first(config, ["intermediate_size", "n_inner", "ffn_dim"]) ?? 4 * hidden,
      untied: tied ? 0 : 1,
    },
  };
}
