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

/** Offsets of `count` rows that are all of one height. */
function evenOffsets(count, height) {
  const offsets = new Float64Array(count + 1);
  for (let i = 1; i <= count; i += 1) offsets[i] = i * height;
  return offsets;
}

export class VirtualList {
  #scroller;
  #sizer;
  #rows;
  #inTable;
  #offsets = rowOffsets([]);
  #mounted = new Map();
  #pools = new Map();

  /**
   * rows: {create(kind) -> Element, render(element, index), kind(index), key(index),
   * height: a number or height(index), range(start, end)?}. An element is used again for rows of
   * the same kind; a row whose key stays keeps its element, and with it the keyboard focus. A row
   * that has the focus stays, however far it is scrolled away.
   *
   * The rows lie in the scroller's [data-sizer]. Where that has the role "table" (or "grid") it
   * tells how many rows there are and each row its number; else they are items of a list.
   */
  constructor(scroller, rows) {
    this.#scroller = scroller;
    this.#rows = rows;
    this.#sizer = scroller.querySelector("[data-sizer]");
    this.#inTable = ["table", "grid"].includes(this.#sizer.getAttribute("role"));
    scroller.addEventListener("scroll", () => this.#show(false), { passive: true });
    this.#sizer.addEventListener("keydown", (event) => this.#pressed(event));
    new ResizeObserver(() => this.render()).observe(scroller);
  }

  /** The list has changed: `count` rows now. */
  setCount(count) {
    const { height } = this.#rows;
    if (typeof height !== "number") this.#offsets = rowOffsets(Array.from({ length: count }, (_, i) => height(i)));
    else if (count !== this.count || count === 0) this.#offsets = evenOffsets(count, height);
    const whole = `${this.#offsets[count]}px`;
    if (this.#sizer.style.height !== whole) {
      this.#sizer.style.height = whole;
      this.#scroller.style.setProperty("--list-height", whole);
    }
    if (this.#inTable) this.#sizer.setAttribute("aria-rowcount", count);
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

  /** The index of the row in which `element` lies, or -1. */
  indexOf(element) {
    for (const entry of this.#mounted.values()) if (entry.element.contains(element)) return entry.index;
    return -1;
  }

  /** Draw the rows in view, those that were there before as well. */
  render() {
    this.#show(true);
  }

  /** Up and Down lead from a control to the same one of the row above or below. */
  #pressed(event) {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const index = this.indexOf(event.target) + by;
    if (index < 0 || index >= this.count) return;
    event.preventDefault();
    this.scrollTo(index);
    const controls = [...this.element(index).querySelectorAll("a[href], button, input")].filter((control) => control.checkVisibility() && !control.disabled);
    (controls.find((control) => control.dataset.part === event.target.dataset.part) ?? controls[0])?.focus();
  }

  #show(anew) {
    const { start, end } = visibleRange(this.#offsets, this.#scroller.scrollTop, this.#scroller.clientHeight);
    const focused = this.#sizer.contains(document.activeElement) ? document.activeElement : null;
    const wanted = this.#wanted(start, end, focused);
    this.#release(wanted);
    let before = null;
    for (const [key, index] of wanted) before = this.#place(key, index, before, anew);
    // A row that changes its place among the others is taken out for a moment.
    if (focused && document.activeElement !== focused && this.#sizer.contains(focused)) focused.focus({ preventScroll: true });
    this.#rows.range?.(start, end);
  }

  /** Key -> index of the rows that shall be there, in order. */
  #wanted(start, end, focused) {
    const indices = [];
    for (let i = start; i < end; i += 1) indices.push(i);
    const kept = focused ? this.#focusedIndex(focused) : -1;
    if (kept >= 0 && kept < start) indices.unshift(kept);
    else if (kept >= end) indices.push(kept);
    return new Map(indices.map((index) => [this.#rows.key(index), index]));
  }

  #focusedIndex(focused) {
    for (const [key, { element, index }] of this.#mounted) {
      if (!element.contains(focused)) continue;
      if (index < this.count && this.#rows.key(index) === key) return index;
      for (let i = 0; i < this.count; i += 1) if (this.#rows.key(i) === key) return i;
    }
    return -1;
  }

  #release(wanted) {
    for (const [key, { element, kind }] of this.#mounted) {
      if (wanted.has(key)) continue;
      element.remove();
      this.#mounted.delete(key);
      if (!this.#pools.has(kind)) this.#pools.set(kind, []);
      this.#pools.get(kind).push(element);
    }
  }

  /** The row's element, behind `before` in the document: the keyboard meets rows in their order. */
  #place(key, index, before, anew) {
    const kind = this.#rows.kind(index);
    let entry = this.#mounted.get(key);
    if (entry && entry.kind !== kind) {
      entry.element.remove();
      entry = undefined;
    }
    const known = entry !== undefined;
    if (!known) {
      entry = { element: this.#pools.get(kind)?.pop() ?? this.#rows.create(kind), kind, index: -1 };
      this.#mounted.set(key, entry);
    }
    const { element } = entry;
    if (element.parentNode !== this.#sizer || element.previousElementSibling !== before) {
      this.#sizer.insertBefore(element, before ? before.nextSibling : this.#sizer.firstChild);
    }
    if (known && !anew && entry.index === index) return element;
    entry.index = index;
    this.#lay(element, index);
    this.#rows.render(element, index);
    return element;
  }

  #lay(element, index) {
    element.style.transform = `translateY(${this.#offsets[index]}px)`;
    element.style.height = `${this.#offsets[index + 1] - this.#offsets[index]}px`;
    if (this.#inTable) {
      element.setAttribute("aria-rowindex", index + 1);
      return;
    }
    element.setAttribute("aria-posinset", index + 1);
    element.setAttribute("aria-setsize", this.count);
  }
}
