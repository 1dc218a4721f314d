// From a pasted line, or a whole traceback, to what explains it: one matcher for the search and the page of error texts.

const plain = (text) => text.replace(/\u001b\[[0-9;]*m/g, "").replace(/\s+/g, " ").toLowerCase();

let known;

/** The texts that are explained: [{id, parts, title}]; fetched when they are first needed. */
export function texts(address) {
  known ??= fetch(address).then((answer) => (answer.ok ? answer.json() : [])).catch(() => []);
  return known;
}

/**
 * The text among `known` that `pasted` is of, or undefined. Its parts stand there in their order; of several, that
 * with the most letters fixed, and of two alike the one that stands last, where a traceback ends.
 */
export function match(pasted, known) {
  const text = plain(pasted);
  let best, most = 0, last = -1;
  for (const one of known) {
    let from = 0;
    const found = one.parts.every((part) => {
      const place = text.indexOf(plain(part), from);
      from = place + part.length;
      return place >= 0;
    });
    const letters = one.parts.reduce((sum, part) => sum + part.length, 0);
    if (found && (letters > most || (letters === most && from > last))) [best, most, last] = [one, letters, from];
  }
  return best;
}

/** What a language calls the heading of a text. */
export const title = (one, language) => one.title[language] ?? one.title.en ?? one.id;

const field = document.querySelector(".bb-error");

async function lead() {
  const pasted = field.querySelector("textarea").value;
  const answer = field.querySelector("[role=status]");
  const one = match(pasted, await texts(field.dataset.texts));
  answer.replaceChildren();
  if (!pasted.trim()) return;
  if (!one) return answer.append(field.dataset.unknown);
  const link = document.createElement("a");
  link.href = `#${one.id}`;
  link.textContent = title(one, document.documentElement.lang);
  const [before, after] = field.dataset.known.split("{text}");
  answer.append(before, link, after ?? "");
}

field?.addEventListener("input", lead);
