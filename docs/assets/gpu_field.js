// The field in which a reader says which GPU they have. What is kept, in the address and in storage, is an id.

import { kept, listed, understand } from "./gpus.js";
import { chosen, keep } from "./keeping.js";

const BF16_FROM = 80; // the compute capability, times ten
const TENSOR_CORES_FROM = 70;
const PAUSE = 400; // milliseconds without a key, after which what is typed counts
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
 * Let the field of `id` choose a GPU, and keep it: `changed(gpu, count)` is called with a row of the table, which has its
 * `id`, its `bytes` and its `label`, or with undefined where nothing is chosen any more; `count` is how many of them
 * were named, if that was said. `words` are texts of the page's language.
 *
 * Answers a function that chooses what was kept.
 */
export function gpuField(id, address, words, changed) {
  const input = document.getElementById(id);
  const said = document.getElementById(`${id}-said`);
  const rows = () => (table ??= fetch(address).then((answer) => answer.json()).catch(() => []));

  let pause;
  let answered = ""; // the text that the page is an answer to

  const change = (gpu, lasting, count) => {
    keep("gpu", gpu?.id ?? "", lasting);
    changed(gpu, count);
  };

  const choose = (gpu, { several = 0, lasting = true, written = true } = {}) => {
    clearTimeout(pause);
    if (written) input.value = gpu?.label ?? "";
    answered = input.value;
    const remarks = [several && words.my_gpu_several, gpu?.shared && words.my_gpu_shared].filter(Boolean);
    said.replaceChildren(remarks.join(words.between_sentences));
    change(gpu, lasting, several || undefined);
  };

  /** Answer what is typed; only where it is done with, write the name of what it means into the field. */
  const answer = async (written) => {
    clearTimeout(pause);
    const typed = input.value;
    const table = await rows();
    if (typed !== input.value) return;
    const found = understand(typed, table);
    if (found.gpu) return choose(found.gpu, { several: found.several, written });
    // A button that was just offered must not be another one when it is released.
    if (typed === answered) return;
    answered = typed;
    change(undefined);
    if (found.choices) offer(found.choices);
    else said.textContent = found.unknown ? words.my_gpu_unknown : "";
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
    list.replaceChildren(...listed(await rows()).map((one) => {
      const option = document.createElement("option");
      option.value = one.label;
      return option;
    }));
  }, { once: true });

  input.addEventListener("change", () => answer(true));
  // The old verdict must not stand beside another name.
  input.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(answer, PAUSE, false);
  });

  return async () => {
    const name = chosen("gpu");
    // What another's link says is not the reader's own choice.
    choose(name ? kept(name, await rows()) : undefined, { lasting: false });
  };
}
