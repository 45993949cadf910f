/** Chosen rows by id. It outlives the elements of a list that shows only what is in view. Pure. */
export class Selection {
  #ids = new Set();

  get size() {
    return this.#ids.size;
  }

  get ids() {
    return [...this.#ids];
  }

  has(id) {
    return this.#ids.has(id);
  }

  /** Choose all of `ids`, or none of them. */
  set(ids, chosen) {
    for (const id of ids) {
      if (chosen) this.#ids.add(id);
      else this.#ids.delete(id);
    }
  }

  clear() {
    this.#ids.clear();
  }

  /** Forget those that `keep(id)` does not want. */
  prune(keep) {
    for (const id of this.#ids) if (!keep(id)) this.#ids.delete(id);
  }

  /** "all", "some" or "none" of `ids` are chosen; none of nothing. */
  of(ids) {
    let chosen = 0;
    for (const id of ids) if (this.#ids.has(id)) chosen += 1;
    if (chosen === 0) return "none";
    return chosen === ids.length ? "all" : "some";
  }
}
