/** The panel beside the map: one node's numbers, and the reason. */
import { debounce, keepChildren, one, parts, setHidden, setText, stamp } from "../lib/dom.js";
import { camelBreaks } from "../format.js";
import { describeNode } from "./model.js";

const SPEAK_AFTER_MS = 250;

export class Inspector {
  #root;
  #parts;
  #speak = debounce((words) => setText(this.#parts.spoken, words), SPEAK_AFTER_MS);

  constructor(root) {
    this.#root = root;
    this.#parts = parts(root);
  }

  clear() {
    delete this.#root.dataset.kind;
    setHidden(this.#parts.hint, false);
    setHidden(this.#parts.body, true);
  }

  show(model, node, raw, pinned) {
    const said = describeNode(model, node, raw);
    setHidden(this.#parts.hint, true);
    setHidden(this.#parts.body, false);
    this.#root.dataset.kind = said.kind;
    setText(this.#parts.verdict, said.verdict);
    setText(this.#parts.name, said.name);
    setText(this.#parts.reason, said.code ? `${said.reason} (${said.code})` : said.reason);
    setHidden(one(".inspector-table", this.#root), said.rows.length === 0 || said.total === null);
    keepChildren(this.#parts.rows, said.rows, () => stamp("inspector-row-template"), (row, score) => {
      const text = parts(row);
      setText(text.plugin, camelBreaks(score.plugin));
      setText(text.raw, score.raw ?? (score.normalised === null ? "–" : "…"));
      setText(text.normalised, score.normalised ?? "–");
      setText(text.weight, score.weight);
      setText(text.weighted, score.weighted ?? "–");
    });
    setText(this.#parts.total, said.total ?? "–");
    setText(this.#parts.pin, pinned ? "Pinned. Escape, or a click on it, lets go." : "Click or press Enter to keep this node here.");
    this.#speak(`${said.name}: ${said.verdict}, ${said.reason}${said.total === null ? "" : `, total ${said.total}`}`);
  }
}
