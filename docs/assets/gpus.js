// What readers mean by what they type for a GPU, or paste from nvidia-smi or torch: one of the table, or a size.
// Names go before sizes; what may be several, or has a word that is not understood, is offered; nothing is guessed.

const GIB = 2 ** 30;
const LARGEST = 300; // gigabytes of one device whose model is not known
const SMALLEST_NUMBER = 100; // a bare number from here on is the number of a model, below it a size
const MOST = 6; // that are offered

const GIGA = words(`g gb gib gbyte gbytes gig gigs giga gigabyte gigabytes go гб гигабайт ギガ ギガバイト 기가 吉字节 千兆字节 千兆
  جيجا جيجابايت غيغا غيغابايت`);
const MEGA = words("mb mib megabyte megabytes");
// What a name may leave out, and those of another maker or series may not have.
const SERIES = words("nvidia geforce tesla quadro rtx gtx amd ati radeon rx instinct intel arc apple");
// What may stand beside a size.
const MEMORY = words("vram video 显存 顯存 ビデオメモリ");
const DEVICE = words("gpu gpus graphics card cards 显卡 顯卡 显示卡 顯示卡 グラボ グラフィックボード بطاقة كرت شاشة");
// What may stand beside a name and tells nothing two models apart.
const NOISE = new Set([...MEMORY, ...DEVICE, ...words(`nvidia corporation hbm hbme gddr gddrx pcie pci e sxm oam
  desktop workstation server edition chip silicon generation 英伟达 英偉達 エヌビディア إنفيديا انفيديا
  with design asus rog strix tuf gaming msi suprim ventus gigabyte aorus eagle windforce evga ftw zotac trinity palit pny inno galax
  gainward sapphire nitro pulse powercolor xfx asrock founders oc`)]);
const VERSIONED = words("sxm hbm hbme gddr gddrx pcie pci ftw inno x"); // the number behind is no memory
const LAPTOP = words("laptop mobile notebook portable 笔记本 筆電 笔记本电脑 移动版 ノート ノートパソコン ноутбук 노트북 لابتوب");
// Words of names that are in many.
const COMMON = words("pro max ultra laptop super ti xt data center ada orin agx nano blackwell");
// Prices, shares, screens, comparisons and versions are no GPUs, nor are numbers with an exponent.
const STRAY = /[$€£¥₩₹%<>≤≥≠=!¬"″½¼]|(?:^|\s)-\s*\d|\d\s*\/\s*\d|(?:^|\s)\d+(?:\.\d+)?e\d/;
// Rented machines have names in which those of GPUs seem to stand: p4d.24xlarge, a2-highgpu-1g.
const RENTED = /\b[a-z]+\d\w*[.-](?:\d*(?:x?large|metal)|(?:high|ultra|mega|edge)gpu|standard)(?:-\d+\w*)?\b/g;
const PRINTED = /nvidia-smi|\d\s*mib|total_memory|uuid|driver version|\bmig\b|\||memory total/;

function words(text) {
  return new Set(text.split(/\s+/));
}

/**
 * What `text` means: `{}` if nothing, or one of
 * `{gpu}`, a row of `rows` with its `bytes`, and how many were named in `several` if it is more than one;
 * `{choices}`, rows and sizes that it may be; `{unknown: true}`.
 */
export function understand(text, rows) {
  const { gpu, choices, ...more } = meant(text, rows);
  return { ...(gpu && { gpu: asSold(gpu, rows) }), ...(choices && { choices: choices.map((one) => asSold(one, rows)) }), ...more };
}

function meant(text, rows) {
  const plain = normal(text);
  if (!plain) return text.trim() ? { unknown: true } : {};
  const exact = listed(rows).find((one) => normal(one.label) === plain);
  if (exact) return { gpu: exact };
  const table = known(rows);
  if (PRINTED.test(plain) && /[a-z]{3}/.test(plain.replaceAll(/mib/g, ""))) return printed(plain, table);
  return typed(plain, table);
}

/** What a list of `rows` offers: each with each of its sizes. */
export const listed = (rows) => allOf({ rows });

/** The choice that an address or the storage keeps as `id`: "rtx-4090-24", "apple-m2-max-32", "24"; undefined if none. */
export function kept(id, rows) {
  const row = rows.find((one) => one.id === id);
  if (row) return row.memory_gb ? chosen(row) : undefined;
  const [, name, size] = /^(?:(.*)-)?(\d+(?:\.\d+)?)$/.exec(id ?? "") ?? [];
  if (name === undefined) return possible(Number(size)) ? asSold(sized(Number(size)), rows) : undefined;
  const shared = rows.find((one) => one.id === name && one.sizes?.includes(Number(size)));
  return shared && chosen(shared, Number(size));
}

function chosen(row, size = row.memory_gb) {
  const id = row.memory_gb ? row.id : `${row.id}-${size}`;
  return { ...row, id, memory_gb: size, label: `${row.name} · ${size} GB`, bytes: row.bytes ?? size * GIB };
}

function sized(exact) {
  const size = Number(exact.toFixed(1));
  return { id: String(size), memory_gb: size, label: `${size} GB`, bytes: size * GIB };
}

/** A size without a name as the least that a card of `rows` sold with it holds: the driver leaves some less than that. */
function asSold(gpu, rows) {
  const alike = gpu.name ? [] : rows.filter((row) => row.bytes && row.memory_gb === gpu.memory_gb);
  return { ...gpu, bytes: Math.min(gpu.bytes, ...alike.map((row) => row.bytes)) };
}

const possible = (size) => size >= 1 && size <= LARGEST;

/** What `choices` offer, each once; unknown where that is nothing. */
function offered(choices) {
  const found = [...new Map(choices.map((one) => [one.id, one])).values()].slice(0, MOST);
  return found.length > 0 ? { choices: found } : { unknown: true };
}

const allOf = ({ rows }) => rows.flatMap((row) => (row.memory_gb ? [chosen(row)] : row.sizes.map((size) => chosen(row, size))));

/** `text` in one width, one case and one kind of digits, without signs of trade and without names of Macs. */
function normal(text) {
  return text.replaceAll(/[™®©]|\((?:r|tm|c)\)/gi, " ").normalize("NFKC").toLowerCase()
    .replaceAll(/[\u0660-\u0669\u06f0-\u06f9]/g, (digit) => digit.charCodeAt(0) % 16)
    .replaceAll(/(?<![\da-z])(\d{1,3}),(\d{3})(?!\d)/g, "$1$2")
    .replace(/^.*\[([^\]]*\b(?:geforce|quadro|tesla|titan|rtx|radeon|arc|a\d+)\b[^\]]*)\]\s*(?:\(rev \w+\)\s*)?$/s, "$1") // a line of lspci
    .replaceAll("の", " ")
    .replaceAll(/\bgfx\d\w*/g, " ").replaceAll(RENTED, " ").replaceAll(/macbook(?: pro| air)?|mac (?:mini|studio|pro)\b/g, " ")
    .replaceAll(/\bcenter gpu max\b/g, "center max").replaceAll(/\bmax-?q workstation\b/g, "workstation")
    .replaceAll(/(?:\bmobile\s*\/\s*)?\bmax-?\s?q\b(?:\s*\/\s*mobile)?/g, "laptop").replaceAll("×", "x").trim();
}

/** The numbers and the runs of letters of `text`, with whether a space is before them; glued words come apart. */
function split(text, vocabulary) {
  const found = [];
  for (const match of text.matchAll(/\d+(?:\.\d{1,2}(?!\d)|,\d(?!\d))?|[a-z]+|[^\P{L}a-z]+/gu)) {
    const spaced = /[\s,]/.test(text[match.index - 1] ?? " ");
    for (const [place, word] of apart(match[0], vocabulary).entries()) {
      found.push({ text: read(word, found.at(-1), spaced || place > 0), spaced: spaced && place === 0 });
    }
  }
  return found;
}

/** `word` as names have it: "4070s" is a SUPER, "4090m" is in a laptop. */
function read(word, before, spaced) {
  const model = /^\d{4}$/.test(before?.text) && !spaced;
  if (word === "s" && (model || before?.text === "ti")) return "super";
  if (LAPTOP.has(word) || (word === "m" && model)) return "laptop";
  return word.replace(",", ".");
}

/** `run` as words of `vocabulary`, itself alone where it is none of several: "tisuper" is ti and super. */
function apart(run, vocabulary) {
  if (run === "tis") return ["ti", "s"];
  if (vocabulary.has(run) || !/^[a-z]+$/.test(run)) return [run];
  const ways = [[]];
  for (let end = 2; end <= run.length; end++) {
    for (let start = end - 2; start >= 0 && !ways[end]; start--) {
      if (ways[start] && vocabulary.has(run.slice(start, end))) ways[end] = [...ways[start], run.slice(start, end)];
    }
  }
  return ways[run.length] ?? [run];
}

const tables = new WeakMap();

/** `rows` by what makes up their names: {models: [{name, core, own, rows}], vocabulary}. */
function known(rows) {
  if (tables.has(rows)) return tables.get(rows);
  const byName = new Map();
  const vocabulary = new Set([...SERIES, ...NOISE, ...LAPTOP].filter((word) => word.length > 1));
  for (const row of rows) {
    const all = split(normal(row.name), new Set()).map((token) => token.text);
    const core = all.filter((word) => !SERIES.has(word) && !DEVICE.has(word) && word !== "blackwell");
    // "RTX 6000" alone may be of three generations, "TITAN" of three series.
    if (all.includes("quadro") && /^\d/.test(core[0])) core.unshift("quadro", "rtx");
    if (core.join() === "titan") core.push("rtx");
    if (core[0] === "pro" && core[1] === "w") core.shift();
    const model = byName.get(row.name) ?? { name: row.name, core, own: beside(all), rows: [] };
    model.rows.push(row);
    byName.set(row.name, model);
    all.filter((word) => /^[a-z]{2,}$/.test(word)).forEach((word) => vocabulary.add(word));
  }
  const models = [...byName.values()].sort((one, other) => other.core.length - one.core.length);
  tables.set(rows, { models, byName, vocabulary });
  return tables.get(rows);
}

/** The words for makers and series that may stand beside a name of the words `all`. */
function beside(all) {
  const own = all.filter((word) => SERIES.has(word) || word === "blackwell" || word === "pro");
  if (own[0] === "geforce" || own[0] === "quadro") own.push("nvidia");
  if (own.includes("nvidia") && own[0] !== "geforce") own.push(own.includes("rtx") ? "quadro" : "tesla");
  if (own.includes("amd")) own.push("ati", "radeon");
  return new Set(own);
}

/** Where names of models stand among `tokens`, the longest at each place: [{at, end, model}]. */
function models(tokens, { models: all }) {
  const found = [];
  for (let at = 0; at < tokens.length; at++) {
    const model = all.find(({ core }) => core.every((word, place) => tokens[at + place]?.text === word) && joined(tokens, at, core));
    if (!model) continue;
    found.push({ at, end: at + model.core.length, model });
    at += model.core.length - 1;
  }
  return found;
}

/** A letter of a name belongs to the number behind it only if no space is between them: "a 40 GB card". */
function joined(tokens, at, core) {
  return !/^[a-z]$/.test(core[0]) || !tokens[at + 1]?.spaced;
}

/** What is named in `text`, and what is said beside: {names, sizes in GB, numbers, strange and other words, series}. */
function parse(text, table) {
  const tokens = split(text, table.vocabulary);
  const found = models(tokens, table);
  const taken = new Set(found.flatMap(({ at, end }) => Array.from({ length: end - at }, (_, place) => at + place)));
  const parsed = { names: [...new Map(found.map(({ model }) => [model.name, model])).values()] };
  Object.assign(parsed, { sizes: [], numbers: [], glued: [], strange: [], series: [], said: [] });
  for (let at = 0; at < tokens.length; at++) {
    const { text: word, spaced } = tokens[at];
    const [before, next] = [tokens[at - 1], taken.has(at + 1) ? undefined : tokens[at + 1]];
    if (taken.has(at)) continue;
    if (/^\d/.test(word)) {
      if (GIGA.has(next?.text)) parsed.sizes.push(Number(word)), at++;
      else if (MEGA.has(next?.text)) parsed.sizes.push(Number(word) / 1024), at++;
      else if (VERSIONED.has(before?.text) && !taken.has(at - 1)) continue;
      else if ((before && !spaced && !SERIES.has(before.text)) || (next && !next.spaced && /^[a-z]/.test(next.text))) parsed.glued.push(word);
      else parsed.numbers.push(Number(word));
    } else if (SERIES.has(word)) parsed.series.push(word);
    else if (NOISE.has(word)) parsed.said.push(word);
    else parsed.strange.push(word);
  }
  return inLaptop(parsed, table);
}

/** The model in a laptop is another than that of the same name on a desk. */
function inLaptop(parsed, { byName }) {
  if (!parsed.strange.includes("laptop")) return parsed;
  const there = parsed.names.map(({ name }) => byName.get(`${name} Laptop`)).filter(Boolean);
  if (there.length < parsed.names.length) return { ...parsed, names: [], nowhere: true };
  return { ...parsed, names: there, strange: parsed.strange.filter((word) => word !== "laptop") };
}

const isCertain = ({ names, series, strange, glued }) =>
  glued.length === 0 && [...series, ...strange].every((word) => names.every(({ own }) => own.has(word)));

// What a reader typed

function typed(text, table) {
  if (STRAY.test(text)) return { unknown: true };
  const times = /^([2-9]|[1-6]\d)\s*[x*]\s*(?=[a-z]|\d{4})|(?<=[\s\d])[x*]\s*([2-9]|[1-6]\d)$/;
  const [, before, behind] = times.exec(text) ?? [];
  const one = text.replace(times, "");
  const parsed = parse(one, table);
  const { names, numbers, sizes } = parsed;
  if (names.length === 0) return withoutName(parsed, table);
  if (one.includes("...")) return offered(names.flatMap((model) => family(model, [{ names, cut: true }], table)));
  if (names.length > 1 || sizes.length > 1) return offered(names.flatMap((model) => rowsOf(model, sizes)));
  const answer = ofModel(names[0], sizes[0] ?? (names[0].rows[0].memory_gb ? numbers[0] : undefined));
  const certain = isCertain(parsed) && numbers.length <= (sizes.length > 0 ? 0 : 1);
  if (!certain) return answer.gpu ? offered([answer.gpu]) : answer;
  return one === text ? answer : { ...answer, several: Number(before ?? behind) };
}

/** Those of `model` with one of `sizes`, all if there is none such. */
function rowsOf(model, sizes) {
  const all = allOf(model);
  const near = all.filter((row) => sizes.includes(row.memory_gb));
  return near.length > 0 ? near : all;
}

/** The row of `model` that has `size` gigabytes, or what it may be. */
function ofModel(model, size) {
  const all = allOf(model);
  if (size === undefined) return all.length === 1 ? { gpu: all[0] } : offered(all);
  const near = all.filter((row) => row.memory_gb === size || Math.abs(row.bytes / GIB - size) < 0.6);
  if (near.length === 1) return { gpu: near[0] };
  return offered([...all, ...(model.rows[0].memory_gb && possible(size) ? [sized(size)] : [])]);
}

/** A size, where it is one; else the models whose names have the number or the word. */
function withoutName({ sizes, numbers, strange, glued, series, said, nowhere }, table) {
  const plain = strange.length + glued.length + series.length === 0;
  const alone = said.every((word) => MEMORY.has(word)) && numbers[0] < SMALLEST_NUMBER;
  if (plain && sizes.length + numbers.length === 1) {
    const size = sizes[0] ?? (alone ? numbers[0] : undefined);
    if (size !== undefined) return possible(size) ? { gpu: sized(size) } : { unknown: true };
  }
  const spoken = strange.filter((word) => word.length > 2 && !COMMON.has(word));
  const asked = [...numbers.filter((number) => number >= SMALLEST_NUMBER).map(String), ...spoken];
  const near = table.models.filter(({ core, own }) => asked.some((word) => core.includes(word)) && series.every((word) => own.has(word)));
  const all = nowhere ? [] : near.filter(({ rows }) => rows[0].memory_gb).flatMap((model) => rowsOf(model, sizes));
  const alsoSizes = sizes.length > 0 ? sizes : plain && said.length === 0 ? numbers : [];
  return offered([...all.slice(0, MOST - 1), ...alsoSizes.filter(possible).map(sized)]);
}

// What nvidia-smi or torch printed

/** The devices in `text`: every name that stands there, strictly, and the memory that is told as their whole. */
function printed(text, table) {
  const parts = [...text.matchAll(/\dg\.(\d+)gb/g)].map((match) => Number(match[1])); // instances of a device
  if (parts.length > 0) return ofSizes(parts, (text.match(/gpu \d+:/g) ?? []).length < 2);
  const found = text.split(/[|,;()[\]{}'"\n]|\s{2,}|\b(?:off|on|n\/a)\b/).filter((part) => part.split(/[^a-z]+/).some((word) => SERIES.has(word) && (word !== "rtx" || /\brtx\s?(?:a|pro )?\d{4}/.test(part)) || word === "titan"))
    .map((part) => part.replace(/^.*?(?:gpu \d+|name|product name|card series|\bgpu\[\d+\]|^\s*\d+)\s*[:=]?\s*(?=[a-z])/, ""))
    .filter((part) => !/^nvidia-smi|^nvidia\s*$/.test(part.trim()))
    .map((part) => ({ ...parse(part.replace("...", ""), table), cut: part.includes("...") }));
  const told = totals(text);
  const names = [...new Map(found.flatMap((one) => one.names).map((model) => [model.name, model])).values()];
  if (names.length === 0) return ofSizes(told, found.length < 2);
  const certain = names.length === 1 && found.every((one) => one.names.length === 1 && !one.cut && isCertain(one) && one.numbers.length === 0);
  if (!certain) return offered([...names.flatMap((model) => family(model, found, table)).filter((row) => told.length === 0 || told.some((size) => holds(row, size))), ...told.filter(possible).map(sized)]);
  const own = [...new Set([...found.flatMap((one) => one.sizes)])];
  const near = allOf(names[0]).filter((row) => own.every((size) => row.memory_gb === size) && told.every((size) => holds(row, size)));
  if (near.length === 1) return { gpu: near[0] };
  if (told.length === 0 && own.length === 0) return ofModel(names[0]);
  return offered([...allOf(names[0]).filter((row) => own.includes(row.memory_gb) || told.some((size) => holds(row, size))), ...told.filter(possible).map(sized)]);
}

/** `model`, and all whose names begin with its name, if that was cut off. */
function family(model, found, { models: all }) {
  const cut = found.some((one) => one.cut && one.names.includes(model));
  const wider = cut ? all.filter(({ name }) => name.startsWith(`${model.name} `)) : [];
  return [model, ...wider].flatMap(allOf);
}

const holds = (row, size) => size / row.memory_gb > 0.89 && size / row.memory_gb < 1.03;

/** The gigabytes that `text` tells as the whole of a device's memory, each once; nothing where they may be a part. */
function totals(text) {
  const whole = [...text.matchAll(/\/\s*(\d+)\s*mib/g)].map((match) => Number(match[1]) / 1024);
  const bytes = [...text.matchAll(/total[ _]memory\D*(\d{9,})/g)].map((match) => Number(match[1]) / GIB);
  const megabytes = [...text.matchAll(/total_memory\D*(\d{3,7})\s*mb/g)].map((match) => Number(match[1]) / 1024);
  const all = [...whole, ...bytes, ...megabytes];
  const plain = /free|used|\bram\b/.test(text) ? [] : [...text.matchAll(/(\d+)\s*mib/g)].map((match) => Number(match[1]) / 1024);
  return [...new Set(all.length > 0 ? all : plain)];
}

function ofSizes(sizes, single) {
  const found = [...new Set(sizes)].filter(possible);
  return found.length === 1 && single ? { gpu: sized(found[0]) } : offered(found.map(sized));
}
