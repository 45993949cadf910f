/**
 * Text that a list cuts off at the end of its line, in full where it stands: a click, Enter or Space on a
 * button.cut opens it, a click elsewhere or Escape closes it. Titles serve a mouse only.
 */
import { one, setText } from "./lib/dom.js";

/** Between the opened text and the edge of the window. */
const EDGE = 8;

/** Say `text`; where there is `more` to read than it, that is what opens. */
export function setCut(button, text, more = text) {
  setText(button, text);
  if (button.title === more) return;
  button.title = more;
  button.disabled = !more;
}

/** From now on the page's cut texts open. */
export function openCutTexts() {
  document.addEventListener("click", ({ target }) => {
    const button = target.closest?.("button.cut");
    if (button && (button.scrollWidth > button.clientWidth || button.title !== button.textContent)) open(button);
  });
  addEventListener("scroll", () => one("#cut-text")?.hidePopover(), { passive: true, capture: true });
}

function open(button) {
  const box = one("#cut-text") ?? makeBox();
  setText(box, button.title);
  box.showPopover();
  const { left, top } = button.getBoundingClientRect();
  const within = (start, size, whole) => Math.max(EDGE, Math.min(start, whole - size - EDGE));
  box.style.left = `${within(left - EDGE, box.offsetWidth, innerWidth)}px`;
  box.style.top = `${within(top - EDGE, box.offsetHeight, innerHeight)}px`;
}

function makeBox() {
  const box = document.createElement("p");
  box.id = "cut-text";
  box.className = "cut-text";
  box.popover = "auto";
  document.body.append(box);
  return box;
}
