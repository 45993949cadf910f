/** Node names and raw scores: asked for when needed, kept while they are of use. */
import { decodeRaw } from "../frames.js";
import { sortByName } from "./order.js";

/** Names by hash; a cluster whose nodes do not change asks once. */
export class NodeNames {
  #api;
  #byHash = new Map();

  constructor(api) {
    this.#api = api;
  }

  /** What is known at once, or null. */
  get(hash) {
    const known = this.#byHash.get(hash);
    return known && !(known instanceof Promise) ? known : null;
  }

  async load(hash) {
    if (!this.#byHash.has(hash)) this.#byHash.set(hash, this.#fetch(hash));
    try {
      return await this.#byHash.get(hash);
    } catch (error) {
      this.#byHash.delete(hash);
      throw error;
    }
  }

  async #fetch(hash) {
    const { names } = await this.#api.get("nodes", { hash });
    const nodes = { names, byName: sortByName(names) };
    this.#byHash.set(hash, nodes);
    return nodes;
  }
}

const RAW_AFTER_MS = 200;

/** Raw scores of one cycle at a time, fetched when someone looks at a node. */
export class RawScores {
  #api;
  #arrived;
  #sequence = null;
  #raw = null;
  #timer = 0;
  #abort = null;

  constructor(api, arrived) {
    this.#api = api;
    this.#arrived = arrived;
  }

  /** The raw scores of that cycle, or null: then they are on their way. */
  of(sequence) {
    if (sequence === this.#sequence) return this.#raw;
    this.#sequence = sequence;
    this.#raw = null;
    this.#abort?.abort();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fetch(sequence), RAW_AFTER_MS);
    return null;
  }

  async #fetch(sequence) {
    this.#abort = new AbortController();
    try {
      const bytes = await this.#api.bytes(`cycles/${sequence}/raw`, { signal: this.#abort.signal });
      if (sequence !== this.#sequence) return;
      this.#raw = decodeRaw(bytes);
      this.#arrived();
    } catch {
      // Gone or unreachable: the normalised score is on the screen, the raw one stays "…".
    }
  }
}
