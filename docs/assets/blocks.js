// What the blocks of a page can do once a script runs: say where a number comes from, and sort tables.

export const settings = JSON.parse(document.getElementById("bb-page").textContent);
const words = settings.strings;
const ROOT = "\uf8ff"; // what stands in the data for the way to the root of the site
const loading = new Map();

/** What the page shows of `machine` in its language, as HTML by section and key; fetched when first needed. */
export function records(machine) {
  const address = `${settings.data}${machine}.json`;
  if (!loading.has(machine)) {
    loading.set(machine, fetch(address).then((answer) => {
      if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
      return answer.text();
    }).then((text) => JSON.parse(text.replaceAll(ROOT, settings.root))));
  }
  return loading.get(machine);
}

/** An element with attributes and children; text children are never read as HTML. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Fill the details behind the line of a block with what is known of the machine that it shows. */
export async function fillDetails(provenance) {
  const list = provenance.querySelector("dl");
  const { machine, bb } = provenance.closest("[data-machine]").dataset;
  const data = await records(machine);
  list.innerHTML = (data.facts?.[bb] ?? "") + data.origins[list.dataset.origin];
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
  const data = await records(shown.dataset.machine);
  const value = data.values[button.dataset.bb];
  const close = make("button", { type: "button", class: "bb-close", autofocus: "", "aria-label": words.close }, "×");
  close.addEventListener("click", () => card.hidePopover());
  const [head, list] = [make("p"), make("dl")];
  head.innerHTML = value.line;
  list.innerHTML = value.rows + data.origins[value.origin];
  const link = make("button", { type: "button", class: "bb-link", "data-copy": address(button) }, words.copy_link);
  card.replaceChildren(close, head, link, list);
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
  const text = cell.querySelector(":is(bdi, code):not(.bb-cardname, .bb-cardname *, .bb-note *)").textContent.trim();
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
