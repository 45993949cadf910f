/** Light or dark: the system's word until a person says otherwise. */
import { recall, remember } from "./storage.js";

const dark = matchMedia("(prefers-color-scheme: dark)");

export function theme() {
  return document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
}

/** Wire the toggle; `changed` is called with the theme whenever it changes. */
export function startTheme(button, changed = () => {}) {
  button?.addEventListener("click", () => {
    const next = theme() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    remember("theme", next);
    changed(next);
  });
  dark.addEventListener("change", () => {
    if (!recall("theme")) changed(theme());
  });
}
