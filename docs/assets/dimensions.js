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
const ALL = { ...NAMES, ...MORE_NAMES };
/** What most configurations call each dimension. */
export const CONFIG_NAMES = Object.fromEntries(Object.entries(ALL).map(([name, names]) => [name, names[0]]));
const ENCODERS = /bert|roberta|electra|mpnet|deberta/;

const EXPERTS = ["num_local_experts", "num_experts", "n_routed_experts"];

// More than any model has, by far: what is larger is a slip.
const MOST = { hidden: 2 ** 18, layers: 2 ** 12, heads: 2 ** 12, vocabulary: 10 ** 7, groups: 2 ** 12, head: 2 ** 16, intermediate: 2 ** 21 };

/** What `config` calls the dimension `key`, if it says it; null is what a configuration leaves to the model. */
const said = (config, key) => ALL[key].find((name) => config[name] !== undefined && config[name] !== null);
const possible = (key, value) => Number.isInteger(value) && value >= 1 && value <= MOST[key];
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const IMAGES = /\b(?:vit|deit|beit|swin|swinv2|dinov2|dinov3|convnext|convnextv2|resnet|clip_vision_model|siglip_vision_model)\b/;

/** What `config` is most like: an encoder, a GPT-2, or a decoder as Llama is one. */
function kindOf(config) {
  const type = `${config.model_type ?? ""} ${[config.architectures ?? []].flat().join(" ")}`.toLowerCase();
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

/**
 * The kind of model, whether its embeddings are tied, whether it has a part for images, its family and its dimensions,
 * as `text` says them; or the problem, and the names that it is about.
 */
export function readDimensions(text) {
  let config;
  try {
    config = JSON.parse(text);
  } catch {
    return { problem: "no_json" };
  }
  if (!isObject(config)) return { problem: "no_object" };
  const vision = isObject(config.vision_config);
  config = { ...config, ...(isObject(config.text_config) ? config.text_config : {}) };
  if (config.is_encoder_decoder || EXPERTS.some((name) => config[name] > 1)) return { problem: "kind" };
  const names = Object.fromEntries(Object.keys(ALL).map((key) => [key, said(config, key)]));
  const missing = Object.keys(NAMES).filter((key) => names[key] === undefined);
  if (missing.includes("vocabulary") && IMAGES.test(config.model_type)) return { problem: "image" };
  const wrong = Object.keys(ALL).filter((key) => names[key] !== undefined && !possible(key, config[names[key]]));
  if (wrong.length) return { problem: "wrong", names: wrong.map((key) => names[key]).join(", ") };
  if (missing.length) return { problem: "missing", names: missing.map((key) => NAMES[key][0]).join(", ") };
  const dimension = (key) => config[names[key]];
  const [hidden, heads] = [dimension("hidden"), dimension("heads")];
  const kind = kindOf(config);
  const groups = dimension("groups") ?? heads;
  const uneven = !names.head && hidden % heads ? ["hidden", "heads"] : heads % groups ? ["heads", "groups"] : [];
  if (uneven.length) return { problem: "uneven", names: uneven.map((key) => names[key]).join(", ") };
  const tied = Boolean(config.tie_word_embeddings);
  return {
    kind,
    tied,
    vision,
    family: kind === "decoder" ? `decoder${groups === heads ? "-full" : ""}${tied ? "-tied" : ""}` : kind,
    dimensions: {
      hidden,
      layers: dimension("layers"),
      heads,
      vocabulary: dimension("vocabulary"),
      groups,
      head: dimension("head") ?? hidden / heads,
      intermediate: dimension("intermediate") ?? 4 * hidden,
    },
  };
}
