/**
 * Tells, once it is on the screen, what has been drawn: for measurements and for automation.
 *
 * The event `kubesched:painted` on the document has a `detail` of the drawer's own and `at`,
 * milliseconds since the epoch, and `paintMs`, milliseconds since `began` (of
 * performance.now()). It comes after the frame in which the drawing was painted: an
 * animation frame's callback runs before that, the next task behind it.
 */
export const PAINTED = "kubesched:painted";

/** `detail` as the listeners shall see it; `began` is when its drawing began. */
export function tellPainted({ began, ...detail }) {
  requestAnimationFrame(() => setTimeout(() => {
    const times = { at: Date.now(), paintMs: performance.now() - began };
    document.dispatchEvent(new CustomEvent(PAINTED, { detail: { ...detail, ...times } }));
  }));
}
