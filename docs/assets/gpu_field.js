// The field in which a reader says which GPU they have. What is kept, in the address and in storage, is an id.

import { kept, understand } from "./gpus.js";

const KEY = "benchbook.gpu";
let table;

/** The id that the address or the storage keeps, the address first. */
export function keptGpu() {
  const asked = new URLSearchParams(location.search).get("gpu");
  if (asked !== null) return asked;
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return ""; // a reader who forbids storage has the address
  }
}

/** Keep `id`, or nothing if it is empty: in the address, so that it can be shared, and in storage, so that it lasts. */
export function keepGpu(id) {
  const address = new URL(location.href);
  if (id) address.searchParams.set("gpu", id);
  else address.searchParams.delete("gpu");
  if (address.href !== location.href) history.replaceState(history.state, "", address);
  try {
    if (id) localStorage.setItem(KEY, id);
    else localStorage.removeItem(KEY);
  } catch {
    // See above.
  }
}

/**
 * Let the field of `id` choose a GPU: `chosen(gpu)` is called with a row of the table, which has its `id`, its `bytes`
 * and its `label`, or with undefined where nothing is chosen any more. `words` are texts of the page's language.
 *
 * Answers a function that chooses what is kept under an id.
 */
export function gpuField(id, address, words, chosen) {
  const input = document.getElementById(id);
  const said = document.getElementById(`${id}-said`);
  const rows = () => (table ??= fetch(address).then((answer) => answer.json()).catch(() => []));

  const choose = (gpu, several = false) => {
    input.value = gpu?.label ?? "";
    const remarks = [several && words.my_gpu_several, gpu?.shared && words.my_gpu_shared].filter(Boolean);
    said.replaceChildren(remarks.join(" "));
    chosen(gpu);
  };

  const offer = (choices) => {
    const buttons = choices.map((gpu) => {
      const button = document.createElement("button");
      button.type = "button";
      const label = document.createElement("bdi");
      label.textContent = gpu.label;
      button.append(label);
      button.addEventListener("click", () => {
        choose(gpu);
        input.focus();
      });
      return button;
    });
    said.replaceChildren(words.my_gpu_which, " ", ...buttons);
  };

  input.addEventListener("focus", async () => {
    const list = document.getElementById(input.getAttribute("list"));
    list.replaceChildren(...(await rows()).map((row) => {
      const option = document.createElement("option");
      option.value = row.memory_gb ? `${row.name} · ${row.memory_gb} GB` : row.name;
      return option;
    }));
  }, { once: true });

  input.addEventListener("change", async () => {
    const answer = understand(input.value, await rows());
    if (answer.gpu) return choose(answer.gpu, answer.several);
    chosen(undefined);
    if (answer.choices) offer(answer.choices);
    else said.textContent = answer.unknown ? words.my_gpu_unknown : "";
  });

  return async (name) => {
    const gpu = name ? kept(name, await rows()) : undefined;
    choose(gpu);
    return gpu;
  };
}
