/**
 * Rows of one queue: the first hundred live from frames, further ones in ranges over HTTP. Pure.
 */
export const RANGE = 200;
export const STALE_SECONDS = 2;

export class QueueRows {
  #head = [];
  #ranges = new Map();
  #asked = new Map();
  total = 0;

  /** The newest frame: `rows` are the first ones, `total` how many there are. */
  setHead(rows, total) {
    this.#head = rows;
    this.total = Math.max(total, rows.length);
    for (const offset of this.#ranges.keys()) if (offset >= this.total) this.#ranges.delete(offset);
  }

  /** What is known of row `index`, or null while it is on its way. */
  get(index) {
    if (index < this.#head.length) return this.#head[index];
    const offset = index - (index % RANGE);
    return this.#ranges.get(offset)?.[index - offset] ?? null;
  }

  /** Offsets to ask for so that rows [start, end) are known and no older than a moment. */
  wanted(start, end, now) {
    const offsets = [];
    const last = Math.min(end, this.total);
    for (let offset = start - (start % RANGE); offset < last; offset += RANGE) {
      if (Math.min(offset + RANGE, last) <= this.#head.length) continue;
      if (now - (this.#asked.get(offset) ?? -Infinity) < STALE_SECONDS) continue;
      this.#asked.set(offset, now);
      offsets.push(offset);
    }
    return offsets;
  }

  setRange(offset, rows) {
    this.#ranges.set(offset, rows);
  }
}
