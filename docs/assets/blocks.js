// What the blocks of a page can do once a script runs: say where a number comes from, and sort tables.

export const settings = JSON.parse(document.getElementById("bb-page").textContent);
const words = settings.strings;
let loading;

/** What the page shows on every machine, in its language; fetched when it is first needed. */
export function records() {
  loading ??= fetch(settings.data).then((answer) => {
    if (!answer.ok) throw new Error(`${settings.data}: ${answer.status}`);
    return answer.json();
  }).then(localized);
  return loading;
}

/** `tree` with each {"@": {language: ...}} replaced by what stands there for the page's language. */
function localized(tree) {
  if (Array.isArray(tree)) return tree.map(localized);
  if (tree === null || typeof tree !== "object") return tree;
  if ("@" in tree) return tree["@"][settings.language] ?? tree["@"].en ?? Object.values(tree["@"])[0];
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, localized(value)]));
}

/** An element with attributes and children; text children are never read as HTML. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** The mark of what was recorded before its script last changed. */
export function staleMark() {
  const word = make("span", { class: "bb-word" }, words.older_code);
  return make("abbr", { class: "bb-old", title: words.older_code_hint }, "◷ ", word);
}

/** The mark of what was predicted, not measured; it says too of a run that it does not fit the machine. */
export function predictedMark(fitsNot) {
  const word = make("span", { class: "bb-word" }, words.predicted);
  const mark = make("abbr", { class: "bb-predicted", title: words.predicted_hint }, "≈ ", word);
  if (fitsNot) {
    word.append(words.comma);
    mark.title = words.predicted_fits_not_hint;
    mark.append(make("span", { class: "bb-outgrown" }, words.predicted_fits_not));
  }
  return mark;
}

/** The one line of a block: machine, library, month, repeats. */
export function line(origin, repeats) {
  const shown = make("span", { class: "bb-line" });
  for (const text of repeats ? [...origin.line, repeats] : origin.line) {
    if (shown.hasChildNodes()) shown.append("\u00a0", make("span", { class: "bb-dot" }, "·"), " ");
    shown.append(make("bdi", {}, text));
  }
  return shown;
}

/** The details behind it, row by row. */
export function details(rows) {
  const list = make("dl");
  for (const [key, way, content] of rows) {
    const shown = make("dd");
    if (way === "links") {
      content.forEach(([text, to], place) => {
        const address = to.startsWith("https://") ? to : settings.root + to;
        shown.append(place ? words.comma : "", make("a", { href: address }, make("bdi", {}, text)));
      });
    } else if (way === "block") {
      shown.append(make("pre", { lang: "en", dir: "ltr", tabindex: "0" }, make("code", {}, content)));
    } else {
      shown.append(way === "code" ? make("code", { lang: "en", dir: "ltr" }, content) : make("bdi", {}, content));
    }
    list.append(make("div", {}, make("dt", {}, words[`fact_${key}`]), shown));
  }
  return list;
}

/** Fill the details behind the line of a block with what the page's data holds of it. */
export async function fillDetails(provenance) {
  const list = provenance.querySelector("dl[data-origin]");
  if (!list) return; // they are there
  const data = await records();
  const { machine, bb } = provenance.closest("[data-machine]").dataset;
  const origin = data.origins[list.dataset.origin][machine];
  list.replaceWith(details([...(data.facts?.[bb]?.[machine] ?? []), ...origin.rows]));
}

document.addEventListener("toggle", (event) => {
  if (event.target.open && event.target.matches(".bb-provenance")) fillDetails(event.target);
}, true);

// Where a number in a sentence comes from.

const card = make("div", { id: "bb-card", class: "bb-details", role: "dialog", popover: "", "aria-label": words.provenance });
let opener = null;
document.querySelector("article").append(card);
card.addEventListener("toggle", (event) => {
  if (event.newState === "closed") opener?.setAttribute("aria-expanded", "false");
});

async function open(button) {
  const shown = button.querySelector("data");
  const data = await records();
  const machine = shown.dataset.machine;
  const value = data.values[button.dataset.bb]?.[machine];
  if (!value) return;
  const origin = data.origins[value.origin][machine];
  const close = make("button", { type: "button", class: "bb-close", autofocus: "", "aria-label": words.close }, "×");
  close.addEventListener("click", () => card.hidePopover());
  const head = make("p", {}, line(origin, value.repeats));
  if (origin.stale) head.append(" ", make("span", { class: "bb-stale" }, staleMark()));
  const link = make("button", { type: "button", class: "bb-link", "data-copy": address(button) }, words.copy_link);
  card.replaceChildren(close, head, link, details([...value.rows, ...origin.rows]));
  opener = button;
  button.setAttribute("aria-expanded", "true");
  card.style.removeProperty("--bb-height");
  card.showPopover();
  place(button.getBoundingClientRect());
}

/** The address of the claim that `element` is part of, or else of the heading that it stands below. */
function address(element) {
  const above = (heading) => heading.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
  const headings = [...document.querySelectorAll("article :is(h1, h2, h3)[id]")];
  const url = new URL(location.href);
  url.hash = (element.closest(".bb-claim[id]") ?? headings.findLast(above))?.id ?? "";
  return url.href;
}

/** Put the card below `anchor`, or above it where there is more room; CSS makes it a sheet on a phone. */
function place(anchor) {
  const size = card.getBoundingClientRect();
  const left = Math.min(Math.max(8, anchor.left), innerWidth - size.width - 8);
  const room = { below: innerHeight - anchor.bottom - 14, above: anchor.top - 14 };
  const below = size.height <= room.below || room.below >= room.above;
  const height = Math.min(size.height, below ? room.below : room.above);
  card.style.setProperty("--bb-left", `${left}px`);
  card.style.setProperty("--bb-top", `${below ? anchor.bottom + 6 : anchor.top - height - 6}px`);
  card.style.setProperty("--bb-height", `${height}px`);
}

for (const button of document.querySelectorAll(".bb-value")) {
  button.setAttribute("aria-haspopup", "dialog");
  button.setAttribute("aria-expanded", "false");
}

// Tables that sort.

for (const head of document.querySelectorAll(".bb-table thead th")) {
  const button = make("button", { type: "button", title: words.sort.replace("{column}", head.textContent) });
  button.append(...head.childNodes);
  head.append(button);
  if (!head.hasAttribute("aria-sort")) head.setAttribute("aria-sort", "none");
}

function sort(head) {
  const ascending = head.getAttribute("aria-sort") !== "ascending";
  for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  order(head);
}

/** Bring the rows of `block` back into the order that its heads tell of, once other values stand there. */
export function sortAgain(block) {
  const head = block.querySelector('th:is([aria-sort="ascending"], [aria-sort="descending"])');
  if (head) order(head);
}

function order(head) {
  const table = head.closest("table");
  const column = head.cellIndex;
  const ascending = head.getAttribute("aria-sort") === "ascending";
  const rows = [...table.tBodies[0].rows];
  const keys = new Map(rows.map((row) => [row, sortKey(row.cells[column])]));
  rows.sort((one, other) => compare(keys.get(one), keys.get(other), ascending) || one.dataset.row - other.dataset.row);
  table.tBodies[0].append(...rows);
}

function sortKey(cell) {
  const data = cell.querySelector("data");
  if (data) return data.value === "" ? null : data.value === "true" ? 1 : data.value === "false" ? 0 : Number(data.value);
  const text = cell.querySelector(":is(bdi, code):not(.bb-cardname *, .bb-note *)").textContent.trim();
  const number = Number(text.replaceAll(",", ""));
  return Number.isNaN(number) ? text : number;
}

/** What is missing goes last, whichever the direction. */
function compare(one, other, ascending) {
  if (one === null || other === null) return (one === null) - (other === null);
  const order = typeof one === "number" && typeof other === "number"
    ? one - other
    : String(one).localeCompare(String(other), settings.language);
  return ascending ? order : -order;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest(".bb-value, .bb-table thead button");
  if (button?.matches(".bb-value")) open(button);
  else if (button) sort(button.closest("th"));
});
