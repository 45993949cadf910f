/** A textarea with line numbers, in which lines can be marked and jumped to. */
import { keepChildren, parts, setText, stamp } from "./lib/dom.js";

export class ConfigEditor {
  #lines;
  #text;
  #marked = new Set();

  constructor(root, changed) {
    ({ lines: this.#lines, text: this.#text } = parts(root));
    this.#text.addEventListener("input", () => {
      this.#number();
      changed();
    });
    this.#text.addEventListener("scroll", () => this.#follow());
    new ResizeObserver(() => this.#follow()).observe(this.#text);
  }

  get value() {
    return this.#text.value;
  }

  /** Undo and the place of the cursor are lost, so an unchanged text is left alone. */
  set value(text) {
    if (this.#text.value !== text) this.#text.value = text;
    this.#number();
  }

  set readOnly(value) {
    this.#text.readOnly = value;
  }

  /** Mark lines (counted from 1) as faulty; none with an empty list. */
  mark(lines) {
    this.#marked = new Set(lines);
    this.#number();
  }

  /** Select a line (counted from 1) and bring it into the middle. */
  jump(line) {
    const { start, end } = lineSpan(this.value, line);
    this.#text.focus();
    this.#text.setSelectionRange(start, end);
    const height = this.#text.scrollHeight / Math.max(1, this.value.split("\n").length);
    this.#text.scrollTop = Math.max(0, (line - 0.5) * height - this.#text.clientHeight / 2);
    this.#text.scrollLeft = 0;
  }

  #number() {
    keepChildren(this.#lines, this.value.split("\n"), () => stamp("line-template"), (element, _, i) => {
      setText(element, i + 1);
      element.classList.toggle("line-faulty", this.#marked.has(i + 1));
    });
    this.#follow();
  }

  #follow() {
    this.#lines.scrollTop = this.#text.scrollTop;
  }
}

/** Where a line (counted from 1) begins and ends in a text; the last one where it is too large. */
export function lineSpan(text, line) {
  let start = 0;
  for (let i = 1; i < line; i += 1) {
    const next = text.indexOf("\n", start);
    if (next < 0) break;
    start = next + 1;
  }
  const end = text.indexOf("\n", start);
  return { start, end: end < 0 ? text.length : end };
}
