/** A long list of which only the rows in view exist. The maths is apart, so that it can be tested. */

/** Offsets of rows of the given heights: offsets[i] is row i's top, offsets[n] the whole height. */
export function rowOffsets(heights) {
  const offsets = new Float64Array(heights.length + 1);
  for (let i = 0; i < heights.length; i += 1) offsets[i + 1] = offsets[i] + heights[i];
  return offsets;
}

/** First and one-past-last row that a viewport shows, with `overscan` rows more on each side. */
export function visibleRange(offsets, scrollTop, viewport, overscan = 4) {
  const count = offsets.length - 1;
  if (count <= 0) return { start: 0, end: 0 };
  const first = rowAt(offsets, Math.max(0, scrollTop));
  const last = rowAt(offsets, Math.max(0, scrollTop + viewport - 1));
  return { start: Math.max(0, first - overscan), end: Math.min(count, last + 1 + overscan) };
}

/** The row that covers `y`; the last one beyond the end. */
export function rowAt(offsets, y) {
  let low = 0;
  let high = offsets.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsets[middle] <= y) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

export class VirtualList {
  #scroller;
  #sizer;
  #rows;
  #offsets = rowOffsets([]);
  #mounted = new Map();
  #pools = new Map();

  /**
   * rows: {create(kind) -> Element, render(element, index), kind(index), key(index),
   * height(index), range(start, end)?}. An element is used again for rows of the same kind; a row
   * whose key stays keeps its element, and with it the keyboard focus.
   */
  constructor(scroller, rows) {
    this.#scroller = scroller;
    this.#rows = rows;
    this.#sizer = scroller.querySelector("[data-sizer]");
    scroller.addEventListener("scroll", () => this.render(), { passive: true });
    new ResizeObserver(() => this.render()).observe(scroller);
  }

  /** The list has changed: `count` rows now. */
  setCount(count) {
    const heights = Array.from({ length: count }, (_, i) => this.#rows.height(i));
    this.#offsets = rowOffsets(heights);
    this.#sizer.style.height = `${this.#offsets[count]}px`;
    this.#scroller.style.setProperty("--list-height", `${this.#offsets[count]}px`);
    this.render();
  }

  get count() {
    return this.#offsets.length - 1;
  }

  scrollTo(index) {
    const top = this.#offsets[index];
    const bottom = this.#offsets[index + 1];
    const { scrollTop, clientHeight } = this.#scroller;
    if (top < scrollTop) this.#scroller.scrollTop = top;
    else if (bottom > scrollTop + clientHeight) this.#scroller.scrollTop = bottom - clientHeight;
    this.render();
  }

  element(index) {
    return this.#mounted.get(this.#rows.key(index))?.element ?? null;
  }

  render() {
    const { start, end } = visibleRange(this.#offsets, this.#scroller.scrollTop, this.#scroller.clientHeight);
    const wanted = new Map();
    for (let i = start; i < end; i += 1) wanted.set(this.#rows.key(i), i);
    this.#release(wanted);
    for (const [key, index] of wanted) this.#place(key, index);
    this.#rows.range?.(start, end);
  }

  #release(wanted) {
    for (const [key, { element, kind }] of this.#mounted) {
      if (wanted.has(key)) continue;
      element.remove();
      this.#mounted.delete(key);
      this.#pools.set(kind, [...(this.#pools.get(kind) ?? []), element]);
    }
  }

  #place(key, index) {
    const kind = this.#rows.kind(index);
    let entry = this.#mounted.get(key);
    if (entry && entry.kind !== kind) {
      entry.element.remove();
      entry = undefined;
    }
    if (!entry) {
      const element = this.#pools.get(kind)?.pop() ?? this.#rows.create(kind);
      this.#sizer.append(element);
      entry = { element, kind };
      this.#mounted.set(key, entry);
    }
    entry.element.style.transform = `translateY(${this.#offsets[index]}px)`;
    entry.element.style.height = `${this.#offsets[index + 1] - this.#offsets[index]}px`;
    entry.element.setAttribute("aria-posinset", index + 1);
    entry.element.setAttribute("aria-setsize", this.count);
    this.#rows.render(entry.element, index);
  }
}
