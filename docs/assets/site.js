// What every page does with a script: light or dark, the language switcher's address, copying code and links, linked
// tabs, where the reader is in the page, and opening the search (whose own script and index are loaded only then).

const root = document.documentElement;
const text = JSON.parse(document.getElementById("site-text").textContent);

const scheme = document.querySelector("[data-scheme-toggle]");
const showScheme = () => scheme.setAttribute("aria-pressed", root.dataset.mdColorScheme === "slate");
scheme.addEventListener("click", () => {
  const dark = root.dataset.mdColorScheme !== "slate";
  root.dataset.mdColorScheme = dark ? "slate" : "default";
  showScheme();
  try {
    localStorage.setItem("scheme", dark ? "dark" : "light");
  } catch {
    // A reader who forbids storage keeps the choice for this page only.
  }
});
showScheme();

// The same place in another language: what follows the path in the address goes along.
for (const link of document.querySelectorAll("a[data-language]")) {
  const carry = () => {
    const url = new URL(link.href);
    url.search = location.search;
    url.hash = location.hash;
    link.href = url;
  };
  link.addEventListener("pointerdown", carry);
  link.addEventListener("focus", carry);
  link.addEventListener("click", carry);
}

// What is done is said where every reader notices: shown above all else, and read aloud.
const said = document.createElement("p");
said.className = "site-said";
said.setAttribute("role", "status");
said.popover = "manual";
document.body.append(said);
said.showPopover();
let silence;
const say = (words) => {
  clearTimeout(silence);
  said.hidePopover(); // and back, above a card that was opened since
  said.showPopover();
  said.textContent = words;
  silence = setTimeout(() => (said.textContent = ""), 2500);
};

// Code has a button that copies it; what a cell printed has none. A permalink copies its address, and still leads there.
for (const block of document.querySelectorAll(".md-typeset pre:not(.bb-output > pre) > code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "site-copy";
  button.setAttribute("aria-label", text.copy);
  block.after(button);
}
document.addEventListener("click", async (event) => {
  const source = event.target.closest(".site-copy, .headerlink, [data-copy]");
  if (!source || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const code = source.matches(".site-copy") && source.previousElementSibling.textContent.replace(/\n$/, "");
  try {
    await navigator.clipboard.writeText(code || (source.dataset.copy ?? source.href));
  } catch {
    return; // a browser that forbids it has copied nothing, and nothing is said
  }
  say(code ? text.copied : text.link_copied);
});

// Tabs: who chooses one chooses its namesakes, here and on the pages to come.
const tabs = [...document.querySelectorAll(".tabbed-labels > label")];
const turnTo = (name) => tabs.forEach((label) => label.textContent === name && (label.control.checked = true));
const knownTabs = () => {
  try {
    return [].concat(JSON.parse(localStorage.getItem("tabs")) ?? []);
  } catch {
    return [];
  }
};
// What the reader looks at stays where it is, whatever becomes longer or shorter above it.
const hold = (element, change) => {
  const before = element.getBoundingClientRect().top;
  change();
  if (scrollY) scrollBy({ top: element.getBoundingClientRect().top - before, behavior: "instant" });
};
const recallTabs = () => hold(document.querySelector(":target") ?? root, () => knownTabs().forEach(turnTo));
if (tabs.length) recallTabs();
addEventListener("pageshow", (event) => event.persisted && recallTabs());
document.addEventListener("change", ({ target }) => {
  const name = tabs.find((label) => label.control === target)?.textContent;
  if (name === undefined) return;
  hold(target.parentElement, () => turnTo(name));
  try {
    localStorage.setItem("tabs", JSON.stringify([...knownTabs().filter((one) => one !== name), name].slice(-9)));
  } catch {
    // A reader who forbids storage keeps the choice for this page only.
  }
});

// A block that scrolls sideways can be scrolled with the keyboard.
const reachable = (block) => {
  if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
  else block.removeAttribute("tabindex");
};
const sizes = new ResizeObserver((entries) => entries.forEach((entry) => reachable(entry.target)));
document.querySelectorAll(".md-typeset pre > code, .md-typeset .table-scroll").forEach((block) => sizes.observe(block));

const places = new Map();
for (const link of document.querySelectorAll(".site-toc a")) {
  const heading = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  if (heading) places.set(heading, link);
}
// Every heading above the upper third of the window counts as passed, however far away: the last of them is current.
const passed = new Set();
const reading = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) passed[isIntersecting ? "add" : "delete"](target);
    const current = [...places.keys()].findLast((heading) => passed.has(heading));
    places.forEach((link, heading) => {
      if (heading === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  },
  { rootMargin: "1000000px 0px -66% 0px" },
);
places.forEach((_, heading) => reading.observe(heading));

// The contents, where they are a popover: opened at the reader's place, closed by what is chosen in them.
const toc = document.getElementById("site-toc");
toc?.addEventListener("click", (event) => event.target.closest("a") && toc.hidePopover());
toc?.addEventListener("toggle", () => {
  // `scrollIntoView` would scroll the page below it, too.
  toc.scrollTop = (toc.querySelector("[aria-current]")?.offsetTop ?? 0) - toc.clientHeight / 2;
});

const dialog = document.getElementById("site-search");
let search;
const openSearch = async () => {
  if (dialog.open) return;
  dialog.showModal();
  search ??= import(new URL(dialog.dataset.script, location.href));
  (await search).start(dialog);
};
document.querySelector("[data-search-open]").addEventListener("click", openSearch);
dialog.addEventListener("submit", async (event) => {
  event.preventDefault();
  (await search).enter(dialog);
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  const slash = event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey;
  const ctrlK = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
  if (!slash && !ctrlK) return;
  event.preventDefault();
  openSearch();
});
