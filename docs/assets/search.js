// The search dialog over Pagefind: one index per language, a few kilobytes per query, nothing sent anywhere.

import { match, texts, title } from "./errors.js";

const PAGES = 8;
const SECTIONS = 3;
// Words of a passage, and how many of them may go before the first that was asked for.
const WORDS = 24;
const BEFORE = 10;

let started;
let finding;

/** Prepare `dialog`, already open; called each time it opens. */
export function start(dialog) {
  started ??= prepare(dialog);
  return started;
}

/** Open what is chosen in `dialog`, else the best place of all; who types fast asks for what is not found yet. */
export async function enter(dialog) {
  await start(dialog);
  await finding;
  (dialog.querySelector("[aria-selected=true]") ?? dialog.querySelector(".best"))?.click();
}

async function prepare(dialog) {
  const input = dialog.querySelector("input");
  const list = dialog.querySelector("[role=listbox]");
  const status = dialog.querySelector("[role=status]");
  const hint = status.textContent;
  const site = new URL(dialog.dataset.base + "/", location.href).pathname.replace(/\/+$/, "/");
  let asked = 0;

  const select = (link) => {
    list.querySelectorAll("[aria-selected=true]").forEach((one) => one.setAttribute("aria-selected", "false"));
    if (link) {
      link.setAttribute("aria-selected", "true");
      link.scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", link.id);
    } else input.removeAttribute("aria-activedescendant");
  };
  const move = (step) => {
    const links = [...list.querySelectorAll("a")];
    const now = links.findIndex((link) => link.getAttribute("aria-selected") === "true");
    if (links.length) select(links[(now + step + links.length + (now < 0 && step < 0 ? 1 : 0)) % links.length]);
  };

  dialog.querySelector("[data-search-close]").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    move(step);
  });
  list.addEventListener("click", (event) => event.target.closest("a") && dialog.close());

  let pagefind;
  try {
    pagefind = await import(site + "pagefind/pagefind.js");
    await pagefind.options({ baseUrl: site, ranking: { metaWeights: { title: 5, synonyms: 5 } } });
    await pagefind.init();
  } catch {
    status.textContent = dialog.dataset.failed;
    return;
  }

  const synonyms = namesOf(`${site}pagefind/synonyms.${document.documentElement.lang}.json`);

  /** Put the page at `address` before the others; one that Pagefind lacks is that of the query's beginning. */
  const lead = async (address, pages, query) => {
    const is = (page) => page.url === site.replace(/\/$/, "") + address;
    for (let end = query.length - 1; !pages.some(is) && end > 0; end--) {
      const { results } = await pagefind.search(query.slice(0, end));
      for (const one of results.slice(0, PAGES)) {
        const page = await one.data();
        if (is(page)) pages.push(page);
      }
    }
    pages.sort((one, other) => is(other) - is(one));
  };

  const find = async () => {
    const query = asWritten(input.value);
    const turn = ++asked;
    const found = query ? await pagefind.search(query) : { results: [] };
    const pages = await Promise.all(found.results.slice(0, PAGES).map((one) => one.data()));
    const called = (await synonyms).get(asNamed(query));
    if (called) await lead(called, pages, query);
    const error = dialog.dataset.errors && query ? match(query, await texts(dialog.dataset.texts)) : undefined;
    if (turn !== asked) return;
    const count = Math.max(found.results.length, pages.length) + Number(Boolean(error));
    list.replaceChildren(...pages.flatMap((page) => entries(page, query.toLowerCase())));
    if (error) {
      const name = title(error, document.documentElement.lang);
      const link = entry(`${dialog.dataset.errors}#${error.id}`, name, [error.parts.join(" … ")], "");
      link.classList.add("best");
      list.prepend(link);
    }
    list.querySelectorAll("a").forEach((link, index) => (link.id = `site-search-${index}`));
    select(null);
    input.setAttribute("aria-expanded", String(list.childElementCount > 0));
    if (!query) status.textContent = hint;
    else if (!list.childElementCount) status.textContent = dialog.dataset.none.replace("{query}", input.value.trim());
    else status.textContent = dialog.dataset.found.replace("{count}", count);
  };
  input.addEventListener("input", () => (finding = find()));
  if (input.value) await (finding = find());
}

// What the words found in a section count for; a section that is called what was asked for goes first.
const weight = (found) => found.reduce((sum, one) => sum + one.balanced_score, 0);

/** A query in the characters that pages are written in: neither of full width, nor with a long vowel at a word's end. */
const asWritten = (text) => text.normalize("NFKC").trim().replace(/(?<=[ァ-ヺ])ー(?=\s|$)/g, "");

// Blanks between words are left to who types.
const asNamed = (text) => asWritten(text).replace(/\s+/g, "").toLowerCase();

/** The addresses of pages by what one alone is called, among the synonyms that lie at `address`. */
async function namesOf(address) {
  const names = new Map();
  const pages = await fetch(address).then((answer) => (answer.ok ? answer.json() : {})).catch(() => ({}));
  for (const [page, synonyms] of Object.entries(pages)) {
    for (const name of new Set(synonyms.map(asNamed))) names.set(name, names.has(name) ? undefined : page);
  }
  return names;
}

/** The links to a page and its best sections; the best place of all has the class `best`. */
function entries(page, query) {
  const content = page.raw_content.replaceAll("&lt;", "<").replaceAll("&gt;", ">");
  // Where a language writes no blanks between words, Pagefind parts them by a character of no width.
  const joint = content.includes("\u200b") ? "" : " ";
  const words = content.split(joint ? /\s+/ : "\u200b");
  const heads = page.anchors.filter((one) => /^h\d/.test(one.element)).map((one) => one.location);
  const link = (section, url, kind) => entry(url, section.title, passage(section, words, heads, joint), kind);

  const titled = (section) => Number(section.title.toLowerCase().includes(query));
  const order = (one, other) =>
    titled(other) - titled(one) || weight(other.weighted_locations) - weight(one.weighted_locations);
  const ofTop = (section) => !section.url.includes("#") || section.title === page.meta.title;
  const ranked = [...page.sub_results].sort(order);
  const top = ranked.find(ofTop) ?? { title: page.meta.title, weighted_locations: [] };
  const sections = ranked.filter((section) => !ofTop(section)).slice(0, SECTIONS);
  const links = [link(top, page.url), ...sections.map((section) => link(section, section.url, "section"))];
  links[ranked.length && !ofTop(ranked[0]) ? 1 : 0].classList.add("best");
  return links;
}

/**
 * The text around what was found in `section`, as nodes. It holds neither the section's heading nor the next one, and
 * begins with a sentence or with the row of a table (Pagefind ends each in a full stop) where one is near.
 */
function passage(section, words, heads, joint) {
  const head = section.anchor?.location ?? 0;
  const end = heads.find((place) => place > head) ?? words.length;
  const letters = (text) => text.replaceAll(/\s/g, "").length;
  let first = head;
  for (let rest = letters(section.title); rest > 0 && first < end; first++) rest -= letters(words[first]);

  const found = section.weighted_locations.filter(({ location }) => location >= first && location < end);
  // A word counts once, however often it stands there: all that was asked for is better than much of one word.
  const distinct = (some) => [...new Map(some.map((one) => [words[one.location].toLowerCase(), one])).values()];
  const near = (place) =>
    distinct(found.filter(({ location }) => location >= place && location < place + WORDS - BEFORE));
  const named = distinct(section.weighted_locations.filter(({ location }) => location < first));
  const [densest] = found.map((one) => one.location).sort((one, other) => weight(near(other)) - weight(near(one)));
  // Where the heading says more of it than the text, the text begins at its beginning.
  const best = densest === undefined || named.length > near(densest).length ? first : densest;
  const begins = (place) => place === first || /(?:^|[^.])[.!?。！？؟]["'”’»)\]」』）]*\s*$/.test(words[place - 1]);
  let start = best;
  while (!begins(start) && best - start < BEFORE) start--;
  const torn = !begins(start);
  if (torn) start = Math.max(first, best - 3);
  while (start < end && /^[\s\p{P}]*$/u.test(words[start])) start++; // what ended the sentence before is no beginning
  const stop = Math.min(start + WORDS, end);

  const marked = new Set(found.map((one) => one.location));
  const nodes = words.slice(start, stop).flatMap((word, place) => {
    if (!marked.has(start + place)) return [word, joint];
    const mark = document.createElement("mark");
    mark.textContent = word;
    return [mark, joint];
  });
  return [torn ? "… " : "", ...nodes, stop < end ? "…" : ""];
}

function entry(url, title, text, kind) {
  const link = document.createElement("a");
  link.href = url;
  link.tabIndex = -1;
  link.setAttribute("role", "option");
  link.setAttribute("aria-selected", "false");
  if (kind) link.className = kind;
  const name = document.createElement("b");
  name.textContent = title;
  const shown = document.createElement("p");
  shown.append(...text);
  link.append(name, shown);
  return link;
}
