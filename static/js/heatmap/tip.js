/** The small box beside the pointer. */
import { parts, setHidden, setText } from "../lib/dom.js";

const DISTANCE = 14;

export class Tip {
  #box;
  #frame;

  /** `box` is placed within `frame`, beside the pointer and never outside. */
  constructor(box, frame) {
    this.#box = box;
    this.#frame = frame;
  }

  hide() {
    setHidden(this.#box, true);
  }

  show({ offsetX, offsetY }, name, words) {
    const text = parts(this.#box);
    setText(text.name, name);
    setText(text.text, words);
    setHidden(this.#box, false);
    const { offsetWidth, offsetHeight } = this.#box;
    const room = this.#frame.clientWidth - offsetWidth;
    const right = offsetX + DISTANCE;
    const left = right > room ? offsetX - DISTANCE - offsetWidth : right;
    const above = offsetY - DISTANCE - offsetHeight;
    const top = above < 0 ? offsetY + DISTANCE : above;
    this.#box.style.transform = `translate(${Math.max(0, Math.min(left, room))}px, ${top}px)`;
  }
}
