/**
 * A long table that scrolls with the page, of which only the rows in view exist. All rows are of one
 * height, which is measured; bodies of empty height stand for the rows above and below.
 */
/** More than a screen's worth on each side: a fast scroll meets rows, not emptiness. */
const OVERSCAN = 30;
const FIRST_GUESS = 34;

/** Rows [start, end) to show where `above` pixels of the list are scrolled past. Pure. */
export function rowsInView(count, height, above, viewport, overscan = OVERSCAN) {
  const start = Math.floor(above / height) - overscan;
  const end = Math.ceil((above + viewport) / height) + overscan;
  const within = (row) => Math.min(count, Math.max(0, row));
  return { start: within(start), end: within(end) };
}

export class VirtualTable {
  #table;
  #body;
  #above;
  #below;
  #rows;
  #count = 0;
  #height = FIRST_GUESS;
  #mounted = new Map();
  #spare = [];
  #scheduled = false;

  /** `table` has the bodies [data-above], [data-rows], [data-below]. rows: {create() -> tr, render(tr, index), key(index)}. */
  constructor(table, rows) {
    this.#table = table;
    this.#above = table.querySelector("[data-above]");
    this.#body = table.querySelector("[data-rows]");
    this.#below = table.querySelector("[data-below]");
    this.#rows = rows;
    addEventListener("scroll", () => this.#schedule(), { passive: true });
    addEventListener("resize", () => this.render());
  }

  setCount(count) {
    this.#count = count;
    this.#table.setAttribute("aria-rowcount", count + 1);
    this.render();
  }

  /** The first row is out of sight: what comes in above it would move what is read. */
  get isScrolled() {
    return this.#pixelsAbove() > this.#height;
  }

  scrollToTop() {
    scrollTo({ top: 0 });
    this.render();
  }

  render() {
    this.#show();
    const measured = this.#body.firstElementChild?.getBoundingClientRect().height;
    if (!measured || Math.abs(measured - this.#height) < 0.5) return;
    this.#height = measured;
    this.#show();
  }

  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      this.#show(false);
    });
  }

  #pixelsAbove() {
    return Math.max(0, -this.#above.getBoundingClientRect().top);
  }

  /** Place the rows in view; those that were there before are drawn again only where all are. */
  #show(all = true) {
    const { start, end } = rowsInView(this.#count, this.#height, this.#pixelsAbove(), innerHeight);
    const wanted = new Map();
    for (let i = start; i < end; i += 1) wanted.set(this.#rows.key(i), i);
    this.#release(wanted);
    let before = null;
    for (const [key, index] of wanted) before = this.#place(key, index, before, all);
    setHeight(this.#above, start * this.#height);
    setHeight(this.#below, (this.#count - end) * this.#height);
  }

  #release(wanted) {
    for (const [key, element] of this.#mounted) {
      if (wanted.has(key)) continue;
      element.remove();
      this.#mounted.delete(key);
      this.#spare.push(element);
    }
  }

  #place(key, index, before, all) {
    let element = this.#mounted.get(key);
    const known = element !== undefined;
    if (!known) {
      element = this.#spare.pop() ?? this.#rows.create();
      this.#mounted.set(key, element);
    }
    if (element.parentNode !== this.#body || element.previousElementSibling !== before) {
      this.#body.insertBefore(element, before ? before.nextSibling : this.#body.firstChild);
    }
    if (known && !all) return element;
    element.setAttribute("aria-rowindex", index + 2);
    this.#rows.render(element, index);
    return element;
  }
}

/** A body's own height counts for nothing: the one cell of its one row has it. */
function setHeight(body, pixels) {
  const cell = body.firstElementChild.firstElementChild;
  const height = `${pixels}px`;
  if (cell.style.height !== height) cell.style.height = height;
}
