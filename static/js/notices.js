/** Lines above the page that say what is wrong or unusual, each under a key. */
import { parts, setHidden, setText, stamp } from "./lib/dom.js";

export class Notices {
  #root;
  #lines = new Map();

  constructor(root) {
    this.#root = root;
  }

  /** notice: {text, bad?, action?: {label, run}}. Setting the same again changes nothing. */
  set(key, { text, bad = false, action = null }) {
    let line = this.#lines.get(key);
    if (!line) {
      line = { element: stamp("notice-template"), run: null };
      parts(line.element).action.addEventListener("click", () => line.run?.());
      this.#lines.set(key, line);
      this.#root.append(line.element);
    }
    const shown = parts(line.element);
    line.run = action?.run ?? null;
    line.element.classList.toggle("notice-bad", bad);
    setText(shown.text, text);
    setText(shown.action, action?.label ?? "");
    setHidden(shown.action, !action);
  }

  clear(key) {
    this.#lines.get(key)?.element.remove();
    this.#lines.delete(key);
  }
}
