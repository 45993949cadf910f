/** What a browser remembers of a person's choices; nothing where storage is off. */
const PREFIX = "kubesched.";

export function remember(key, value) {
  try {
    localStorage.setItem(PREFIX + key, value);
  } catch {
    // Private mode or no quota: the choice holds for this page.
  }
}

export function recall(key) {
  try {
    return localStorage.getItem(PREFIX + key);
  } catch {
    return null;
  }
}
