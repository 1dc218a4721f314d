// The search dialog over Pagefind: one index per language, a few kilobytes per query, nothing sent anywhere.

const PAGES = 8;
const SECTIONS = 3;

let started;

/** Prepare `dialog`, already open; called each time it opens. */
export function start(dialog) {
  started ??= prepare(dialog);
  return started;
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
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    (list.querySelector("[aria-selected=true]") ?? list.querySelector("a"))?.click();
  });
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
    await pagefind.options({ baseUrl: site, excerptLength: 24, ranking: { metaWeights: { title: 5, synonyms: 5 } } });
    await pagefind.init();
  } catch {
    status.textContent = dialog.dataset.failed;
    return;
  }

  const find = async () => {
    const query = input.value.trim();
    const turn = ++asked;
    const found = query ? await pagefind.search(query) : { results: [] };
    const pages = await Promise.all(found.results.slice(0, PAGES).map((one) => one.data()));
    if (turn !== asked) return;
    list.replaceChildren(...pages.flatMap((page) => entries(page, query.toLowerCase())));
    list.querySelectorAll("a").forEach((link, index) => (link.id = `site-search-${index}`));
    select(null);
    input.setAttribute("aria-expanded", String(pages.length > 0));
    if (!query) status.textContent = hint;
    else if (!pages.length) status.textContent = dialog.dataset.none.replace("{query}", query);
    else status.textContent = dialog.dataset.found.replace("{count}", found.results.length);
  };
  input.addEventListener("input", find);
  if (input.value) await find();
}

// What the words found in a section count for; a section that is called what was asked for goes first.
const weight = (section) => section.weighted_locations.reduce((sum, one) => sum + one.balanced_score, 0);

function entries(page, query) {
  const sections = page.sub_results.filter((one) => one.url.includes("#") && one.title !== page.meta.title);
  const titled = (section) => Number(section.title.toLowerCase().includes(query));
  const order = (one, other) => titled(other) - titled(one) || weight(other) - weight(one);
  const best = sections.sort(order).slice(0, SECTIONS);
  return [
    entry(page.url, page.meta.title, page.excerpt),
    ...best.map((one) => entry(one.url, one.title, one.excerpt, "section")),
  ];
}

function entry(url, title, excerpt, kind) {
  const link = document.createElement("a");
  link.href = url;
  link.tabIndex = -1;
  link.setAttribute("role", "option");
  link.setAttribute("aria-selected", "false");
  if (kind) link.className = kind;
  const name = document.createElement("b");
  name.textContent = title;
  const passage = document.createElement("p");
  // Pagefind escapes the text and adds <mark> alone; what ended the sentence before is no beginning.
  passage.innerHTML = excerpt.replace(/^[\s.,:;!?)\]。、，：；！？）」』؟،؛·]+/, "");
  link.append(name, passage);
  return link;
}
