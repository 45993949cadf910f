/** The few DOM helpers that the views share. Text goes in as text, never as markup. */

export function one(selector, root = document) {
  return root.querySelector(selector);
}

/** Clone the single element inside <template id="...">. */
export function stamp(templateId) {
  return document.getElementById(templateId).content.firstElementChild.cloneNode(true);
}

/** The parts of an element that are marked data-part="name", by name. */
export function parts(element) {
  const found = {};
  for (const part of element.querySelectorAll("[data-part]")) found[part.dataset.part] = part;
  return found;
}

/** Set text only where it differs, so that an unchanged row costs nothing. */
export function setText(element, text) {
  const value = String(text ?? "");
  if (element.textContent !== value) element.textContent = value;
}

export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

/** Make `parent` hold one child per item; children are used again by position. */
export function keepChildren(parent, items, create, render) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  while (parent.children.length < items.length) parent.append(create());
  items.forEach((item, i) => render(parent.children[i], item, i));
}

export function debounce(action, milliseconds) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...args), milliseconds);
  };
}
