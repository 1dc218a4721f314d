// What readers mean by what they type for a GPU, or paste from nvidia-smi or torch: one of the table, or a size.
// Names go before sizes; what may be several is offered, and nothing is guessed.

const GIB = 2 ** 30;
const LARGEST = 300; // gigabytes of one device
const SMALLEST_NUMBER = 100; // a bare number from here on is the number of a model, below it a size
const MOST = 6; // that are offered

const GIGA = words("g gb gib gig gigs giga gigabyte gigabytes go гб ギガ ギガバイト 吉字节 千兆字节 千兆 جيجا جيجابايت غيغا غيغابايت");
const MEGA = words("m mb mib megabyte megabytes");
// What a name may leave out, and those of another maker or series may not have.
const SERIES = words("nvidia geforce tesla quadro rtx gtx amd ati radeon rx instinct intel arc apple");
// What is said beside a name and tells nothing two models apart.
const NOISE = words(`gpu gpus graphics card cards video vga vram ram hbm hbm2 hbm3 gddr gddr6 memory blackwell generation
  pcie pci sxm oam hbme gddrx ddr e desktop workstation server edition chip soc silicon unified mac imac cuda rocm
  asus rog strix tuf gaming msi suprim gigabyte aorus eagle windforce evga ftw zotac trinity palit pny inno galax
  gainward sapphire nitro pulse powercolor xfx asrock founders oc fe
  显卡 顯卡 显存 顯存 英伟达 英偉達 内存 显示卡 グラボ グラフィックボード エヌビディア メモリ メモリー ビデオメモリ
  بطاقة كرت شاشة ذاكرة إنفيديا انفيديا`);
const LAPTOP = words("laptop mobile notebook");

function words(text) {
  return new Set(text.split(/\s+/));
}

/**
 * What `text` means: `{}` if nothing, or one of
 * `{gpu}`, a row of `rows` with its `bytes`, and `several: true` if it was said to be more than one;
 * `{choices}`, rows and sizes that it may be; `{memory: name}`, where the name needs its memory; `{unknown: true}`.
 */
export function understand(text, rows) {
  const plain = normal(text);
  if (!plain) return {};
  const table = known(rows);
  const tokens = split(plain, table.vocabulary);
  const found = models(tokens, table);
  const printed = /nvidia-smi|\d\s*mib.*\d\s*mib|[a-z].*\d\s*mib|total_memory|uuid|driver version|\bmig\b|\|/s.test(plain);
  return printed ? read(plain, tokens, found, table) : typed(tokens, found, table);
}

/** The choice that an address or the storage keeps as `id`: "rtx-4090-24", "apple-m2-max-32", "24"; undefined if none. */
export function kept(id, rows) {
  const row = rows.find((one) => one.id === id);
  if (row) return row.memory_gb ? chosen(row) : undefined;
  const [, name, size] = /^(?:(.*)-)?(\d+(?:\.\d+)?)$/.exec(id ?? "") ?? [];
  if (!possible(Number(size))) return undefined;
  if (name === undefined) return sized(Number(size));
  const shared = rows.find((one) => one.id === name && !one.memory_gb);
  return shared && chosen(shared, Number(size));
}

function chosen(row, size = row.memory_gb) {
  const id = row.memory_gb ? row.id : `${row.id}-${size}`;
  return { ...row, id, memory_gb: size, label: `${row.name} · ${size} GB`, bytes: row.bytes ?? size * GIB };
}

function sized(size) {
  return { id: String(size), memory_gb: size, label: `${size} GB`, bytes: size * GIB };
}

const possible = (size) => size >= 1 && size <= LARGEST;

/** `text` in one width, one case and one kind of digits, without signs of trade and without names of Macs. */
function normal(text) {
  return text.replaceAll(/[™®©]|\((?:r|tm|c)\)/gi, " ").normalize("NFKC").toLowerCase()
    .replaceAll(/[\u0660-\u0669\u06f0-\u06f9]/g, (digit) => digit.charCodeAt(0) % 16)
    .replaceAll(/(\d),(\d{3})(?!\d)/g, "$1$2")
    .replaceAll(/\bgfx\d\w*/g, " ").replaceAll(/macbook(?: pro| air)?|mac (?:mini|studio|pro)\b/g, " ")
    .replaceAll("×", "x").trim();
}

/** The numbers and the runs of letters of `text`, with whether a space is before them; glued words come apart. */
function split(text, vocabulary) {
  const found = [];
  for (const match of text.matchAll(/\d+(?:[.,]\d{1,2}(?!\d))?|[a-z]+|[^\P{L}a-z]+/gu)) {
    let start = match.index;
    for (const word of apart(match[0], vocabulary)) {
      const spaced = /\s/.test(text[start - 1] ?? "");
      found.push({ text: LAPTOP.has(word) ? "laptop" : word.replace(",", "."), spaced });
      start += word.length;
    }
  }
  return found;
}

/** `run` as words of `vocabulary`, itself alone where it is none of several: "tisuper" is ti and super. */
function apart(run, vocabulary) {
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

/** `rows` by what makes up their names: {models: [{key, core, own, rows}], vocabulary}. */
function known(rows) {
  if (tables.has(rows)) return tables.get(rows);
  const byName = new Map();
  const vocabulary = new Set([...SERIES, ...NOISE, ...LAPTOP].filter((word) => word.length > 1));
  for (const row of rows) {
    const all = split(normal(row.name), new Set()).map((token) => token.text);
    const core = all.filter((word) => !SERIES.has(word) && !NOISE.has(word));
    // "RTX 6000" alone may be of three generations, "TITAN" of three series.
    if (all.includes("quadro") && /^\d/.test(core[0])) core.unshift("quadro", "rtx");
    if (core.join() === "titan") core.push("rtx");
    const model = byName.get(row.name) ?? { name: row.name, core, own: series(row.name, all), rows: [] };
    model.rows.push(row);
    byName.set(row.name, model);
    all.filter((word) => /^[a-z]{2,}$/.test(word)).forEach((word) => vocabulary.add(word));
  }
  const models = [...byName.values()].sort((one, other) => other.core.length - one.core.length);
  const table = { rows, models, vocabulary };
  tables.set(rows, table);
  return table;
}

/** The words for makers and series that may stand beside the name of a row. */
function series(name, all) {
  const own = all.filter((word) => SERIES.has(word));
  if (own[0] === "geforce" || own[0] === "quadro") own.push("nvidia");
  if (own.includes("nvidia")) own.push(own.includes("rtx") ? "quadro" : "tesla");
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

/** A letter of a name belongs to the number behind it only if nothing but a hyphen is between them: "a 40 GB card". */
function joined(tokens, at, core) {
  return !/^[a-z]$/.test(core[0]) || !tokens[at + 1]?.spaced;
}

// What a reader typed

function typed(tokens, found, table) {
  const taken = new Set(found.flatMap(({ at, end }) => Array.from({ length: end - at }, (_, place) => at + place)));
  const rest = leftover(tokens, taken);
  const names = [...new Map(found.map(({ model }) => [model.name, model])).values()];
  if (names.length === 1) {
    const [model] = names;
    const strange = rest.strange.length > 0 || rest.series.some((word) => !model.own.has(word)) || rest.sizes.length > 1;
    const answer = ofModel(model, rest.sizes[0] ?? (strange ? undefined : rest.numbers[0]));
    const several = rest.count > 1;
    if (strange || rest.numbers.length > (rest.sizes.length ? 0 : 1)) return answer.gpu ? { choices: [answer.gpu] } : answer;
    return several ? { ...answer, several } : answer;
  }
  if (names.length > 1) return { choices: names.flatMap((model) => model.rows).slice(0, MOST).map((row) => chosen(row)) };
  return withoutName(rest, table);
}

/** What is said beside the names: {sizes in GB, numbers, strange words, words of series, count of devices}. */
function leftover(tokens, taken) {
  const rest = { sizes: [], numbers: [], strange: [], series: [], count: 1 };
  for (let at = 0; at < tokens.length; at++) {
    const { text } = tokens[at];
    const next = taken.has(at + 1) ? undefined : tokens[at + 1]?.text;
    if (taken.has(at)) continue;
    if (/^\d/.test(text)) {
      const number = Number(text);
      if (GIGA.has(next)) rest.sizes.push(number), at++;
      else if (MEGA.has(next)) rest.sizes.push(number / 1024), at++;
      else if (next === "x" && taken.has(at + 2)) rest.count = number, at++;
      else if (taken.has(at - 1) || !/^(sxm|hbm|gddr|ddr|ftw|inno)$/.test(tokens[at - 1]?.text)) rest.numbers.push(number);
    } else if (text === "x" && /^\d/.test(next) && taken.has(at - 1)) rest.count = Number(next), at++;
    else if (SERIES.has(text)) rest.series.push(text);
    else if (!NOISE.has(text)) rest.strange.push(text);
  }
  return rest;
}

/** The row of `model` that has `size` gigabytes, or what it may be. */
function ofModel({ name, rows }, size) {
  const [first] = rows;
  if (!first.memory_gb) {
    if (size === undefined) return { memory: name };
    return possible(size) ? { gpu: chosen(first, Number(size.toFixed(1))) } : { unknown: true };
  }
  if (size === undefined) return rows.length === 1 ? { gpu: chosen(first) } : { choices: rows.map((row) => chosen(row)) };
  const near = rows.filter((row) => Math.abs(size / row.memory_gb - 0.98) < 0.09);
  if (near.length === 1) return { gpu: chosen(near[0]) };
  return { choices: [...rows.map((row) => chosen(row)), ...(possible(size) ? [sized(size)] : [])] };
}

/** A size, where it is one; else the models whose names have the number or the word. */
function withoutName({ sizes, numbers, strange, series: said }, table) {
  const size = sizes[0] ?? (numbers[0] < SMALLEST_NUMBER ? numbers[0] : undefined);
  const plain = strange.length === 0 && said.length === 0;
  if (plain && sizes.length + numbers.length === 1 && size !== undefined) {
    return possible(size) ? { gpu: sized(Number(size.toFixed(1))) } : { unknown: true };
  }
  const asked = [...numbers.filter((number) => number >= SMALLEST_NUMBER).map(String), ...strange.filter((word) => word.length > 2)];
  const near = table.models.filter(({ core, own }) => asked.some((word) => core.includes(word)) && said.every((word) => own.has(word)));
  const choices = near.flatMap((model) => model.rows).filter((row) => row.memory_gb).slice(0, MOST).map((row) => chosen(row));
  const offered = sizes[0] ?? (plain && numbers.length === 1 ? numbers[0] : undefined);
  if (possible(offered)) choices.push(sized(Number(offered.toFixed(1))));
  return choices.length > 0 ? { choices } : { unknown: true };
}

// What nvidia-smi or torch printed

/** The devices in `text`: their names where a maker stands before them, and the memory that is told in MiB. */
function read(text, tokens, found, table) {
  const part = /\bmig\b[^|]*?\dg\.(\d+)gb/.exec(text); // an instance has a part of its device's memory
  if (part) return { gpu: sized(Number(part[1])) };
  const totals = [...text.matchAll(/\/\s*(\d+)\s*mib/g), ...text.matchAll(/total_memory\D*(\d+)\s*mb/g)];
  const told = (totals.length > 0 ? totals : [...text.matchAll(/(\d+)\s*mib/g)]).map((match) => Number(match[1]) / 1024);
  const sizes = [...new Set(totals.length > 0 ? told : told.length > 0 ? [Math.max(...told)] : [])];
  const named = found.filter(({ at }) => SERIES.has(tokens[at - 1]?.text) || tokens[at].text === "quadro");
  const names = [...new Map(named.map(({ model }) => [model.name, model])).values()];
  if (names.length === 1 && sizes.length < 2) return withPrintedSize(names[0], sizes[0], named[0], tokens);
  if (names.length > 1) return { choices: names.flatMap((model) => model.rows).slice(0, MOST).map((row) => chosen(row)) };
  if (names.length === 0 && sizes.length === 1 && possible(sizes[0])) return { gpu: sized(Number(sizes[0].toFixed(1))) };
  if (sizes.length > 0) return { choices: sizes.filter(possible).map((size) => sized(Number(size.toFixed(1)))) };
  return withoutName(leftover(tokens, new Set()), table);
}

function withPrintedSize(model, size, { end }, tokens) {
  if (size !== undefined) return ofModel(model, size);
  const [number, unit] = tokens.slice(end).filter(({ text }) => !NOISE.has(text)).map(({ text }) => text);
  return ofModel(model, GIGA.has(unit) ? Number(number) : undefined);
}
