// The field in which a reader says which GPU they have. What is kept, in the address and in storage, is an id.

import { kept, understand } from "./gpus.js";
import { chosen, keep } from "./keeping.js";

const BF16_FROM = 80; // the compute capability, times ten
const TENSOR_CORES_FROM = 70;
let table;

/** Whether a GPU is known to compute no bf16, and whether it computes fp16 on tensor cores all the same. */
export const isOlder = (gpu) => gpu?.capability < BF16_FROM;
export const hasTensorCores = (gpu) => gpu.capability >= TENSOR_CORES_FROM;

/** What `gpu`, an older one, computes otherwise than the GPUs that most lines are written for. */
export function remarkOnOlder(gpu, words) {
  const remark = document.createElement("span");
  remark.className = "bb-older";
  remark.textContent = words[hasTensorCores(gpu) ? "my_gpu_older" : "my_gpu_oldest"].replace("{name}", gpu.name);
  return remark;
}

/**
 * Let the field of `id` choose a GPU, and keep it: `changed(gpu)` is called with a row of the table, which has its
 * `id`, its `bytes` and its `label`, or with undefined where nothing is chosen any more. `words` are texts of the
 * page's language.
 *
 * Answers a function that chooses what was kept.
 */
export function gpuField(id, address, words, changed) {
  const input = document.getElementById(id);
  const said = document.getElementById(`${id}-said`);
  const rows = () => (table ??= fetch(address).then((answer) => answer.json()).catch(() => []));

  const change = (gpu, lasting) => {
    keep("gpu", gpu?.id ?? "", lasting);
    changed(gpu);
  };

  const choose = (gpu, several = false, lasting = true) => {
    input.value = gpu?.label ?? "";
    const remarks = [several && words.my_gpu_several, gpu?.shared && words.my_gpu_shared].filter(Boolean);
    said.replaceChildren(remarks.join(words.between_sentences));
    change(gpu, lasting);
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
    said.replaceChildren(words.my_gpu_which, words.between_sentences, ...buttons);
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
    change(undefined);
    if (answer.choices) offer(answer.choices);
    else said.textContent = answer.unknown ? words.my_gpu_unknown : "";
  });

  return async () => {
    const name = chosen("gpu");
    // What another's link says is not the reader's own choice.
    choose(name ? kept(name, await rows()) : undefined, false, false);
  };
}
