// A result of the calculator as a picture to share: the setup in words, what it comes to, and what holds it.

const WIDTH = 1200;
const MARGIN = 60;
const LINE = 34;
const BAR = 56;

/** A picture of a result as a PNG.
 *
 * `title` and `address` are one line each, `words` a list that is put one behind the other, `said` sentences that
 * begin a line each; `parts` are rows of `name`, `value`, `color` and `share`, the last one without a share.
 */
export async function picture({ title, words, said, parts, address, direction }) {
  const style = getComputedStyle(document.body);
  const [font, front, back] = [style.fontFamily, style.color, style.backgroundColor];
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  const prepare = () => {
    context.direction = direction;
    context.textBaseline = "top";
    context.fillStyle = front;
  };
  const start = direction === "rtl" ? WIDTH - MARGIN : MARGIN;
  const sized = (size, weight = 400) => (context.font = `${weight} ${size}px ${font}`);
  sized(24);
  const setup = broken(context, words, " · ");
  sized(24, 600);
  const sentences = said.flatMap((one) => broken(context, one.split(" "), " "));
  const height = 2 * MARGIN + 60 + LINE * (setup.length + sentences.length + parts.length + 2) + 2 * BAR;
  canvas.width = WIDTH;
  canvas.height = height;
  context.fillStyle = back === "rgba(0, 0, 0, 0)" ? "white" : back;
  context.fillRect(0, 0, WIDTH, height);
  prepare();
  let top = MARGIN;
  const write = (text, from = start, align = "start") => {
    context.textAlign = align;
    context.fillText(text, from, top);
  };
  sized(38, 700);
  write(title);
  top += 60;
  for (const lines of [setup, sentences]) {
    sized(24, lines === sentences ? 600 : 400);
    for (const line of lines) {
      write(line);
      top += LINE;
    }
    top += LINE / 2;
  }
  drawBar(context, parts, top, direction);
  top += BAR * 1.5;
  sized(24);
  const end = WIDTH - start;
  const inwards = direction === "rtl" ? -1 : 1;
  for (const { name, value, color } of parts) {
    context.fillStyle = color;
    context.fillRect(inwards > 0 ? start : start - 18, top + 4, 18, 18);
    context.fillStyle = front;
    write(name, start + inwards * 30);
    write(value, end, "end");
    top += LINE;
  }
  top += LINE / 2;
  sized(20);
  // An address runs from left to right wherever it stands.
  context.direction = "ltr";
  write(address, start, direction === "rtl" ? "right" : "left");
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function drawBar(context, parts, top, direction) {
  const room = WIDTH - 2 * MARGIN;
  let from = MARGIN;
  for (const { share = 0, color } of parts) {
    const width = room * share;
    context.fillStyle = color;
    context.fillRect(direction === "rtl" ? WIDTH - from - width : from, top, width, BAR);
    from += width;
  }
}

/** `words` in lines that are no wider than the picture, with `between` them. */
function broken(context, words, between) {
  const lines = [];
  for (const word of words) {
    const longer = lines.length ? `${lines.at(-1)}${between}${word}` : word;
    if (lines.length && context.measureText(longer).width <= WIDTH - 2 * MARGIN) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
