// A result of the calculator as a picture to share: the setup in words, what it comes to, and what holds it.

const WIDTH = 1200;
const MARGIN = 60;
const LINE = 34;
const BAR = 56;
const SMALL = 20;
const LINK_LINE = 28;
const LINK_LINES = 4; // a longer link is no longer typed, nor read by a telephone
const BEFORE_CHUNKS = 33; // bytes of a PNG: its signature and its header

/** A picture of a result as a PNG, which holds its link as a comment too.
 *
 * `title` is one line, `words` a list that is put one behind the other, `said` sentences that begin a line each;
 * `parts` are rows of `name`, `value`, `color` and `share`, the last one without a share. Below them stands `link`,
 * in a few lines, or the page's address alone where it takes more.
 */
export async function picture({ title, words, said, parts, link, direction }) {
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
  sized(SMALL);
  const address = linkLines(context, link);
  const height = 2 * MARGIN + 60 + LINE * (setup.length + sentences.length + parts.length + 1) + LINK_LINE * address.length + 2 * BAR;
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
  sized(SMALL);
  // An address runs from left to right wherever it stands.
  context.direction = "ltr";
  for (const line of address) {
    write(line, MARGIN, "left");
    top += LINK_LINE;
  }
  const drawn = await new Promise((done) => canvas.toBlob(done, "image/png"));
  return withComment(drawn, link);
}

/** `link` in lines that end behind one of its choices; its page's address alone where they are too many or too long. */
function linkLines(context, link) {
  const lines = broken(context, link.split(/(?<=[?&])/), "");
  const fits = lines.length <= LINK_LINES && lines.every((line) => context.measureText(line).width <= WIDTH - 2 * MARGIN);
  return fits ? lines : [link.split(/[?#]/)[0]];
}

/** The PNG `picture` with `text`, which is ASCII, as its comment: a chunk `tEXt` behind its header. */
async function withComment(picture, text) {
  const content = new TextEncoder().encode(`tEXtComment\0${text}`);
  const chunk = new DataView(new ArrayBuffer(content.length + 8));
  chunk.setUint32(0, content.length - 4); // the name of the chunk is not counted
  new Uint8Array(chunk.buffer).set(content, 4);
  chunk.setUint32(content.length + 4, checksum(content));
  return new Blob([picture.slice(0, BEFORE_CHUNKS), chunk, picture.slice(BEFORE_CHUNKS)], { type: picture.type });
}

/** The CRC-32 of `bytes`, as each chunk of a PNG ends with it. */
function checksum(bytes) {
  let rest = -1;
  for (const byte of bytes) {
    rest ^= byte;
    for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ (rest & 1 && 0xedb88320);
  }
  return ~rest >>> 0;
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
