/** Draws what there is to know before a decision: terms, nodes with their usage, who else wants them. */
import { count, plural } from "./format.js";
import { keepChildren, parts, setHidden, setText, stamp } from "./lib/dom.js";

/** Beyond these a list says how many more there are: the dialog is read by a person. */
const MOST_NODES = 100;

/** `root` holds the parts terms, nodesTitle, nodes, nodesMore, rivalsTitle, rivals, rivalsNone. */
export class DecideFacts {
  #parts;

  constructor(root) {
    this.#parts = parts(root);
  }

  /** `facts` as approval_words makes them. */
  show({ terms, nodes, rivals }) {
    const { nodesTitle, nodesMore, rivalsTitle, rivalsNone } = this.#parts;
    keepChildren(this.#parts.terms, terms, () => stamp("fact-template"), renderTerm);
    setText(nodesTitle, `Room held on ${plural(nodes.length, "node")}: in use before → after`);
    setHidden(nodesTitle, nodes.length === 0);
    keepChildren(this.#parts.nodes, nodes.slice(0, MOST_NODES), () => stamp("held-node-template"), renderNode);
    setHidden(nodesMore, nodes.length <= MOST_NODES);
    setText(nodesMore, `and ${count(nodes.length - MOST_NODES)} more nodes`);
    setHidden(rivalsTitle, rivals === null);
    setHidden(rivalsNone, rivals === null || rivals.length > 0);
    keepChildren(this.#parts.rivals, rivals ?? [], () => document.createElement("li"), setText);
  }
}

function renderTerm(element, { term, lines }) {
  const text = parts(element);
  setText(text.term, term);
  keepChildren(text.lines, lines, () => document.createElement("span"), setText);
}

function renderNode(element, { node, pods, uses }) {
  const text = parts(element);
  setText(text.node, node);
  setText(text.pods, pods);
  keepChildren(text.uses, uses, () => stamp("held-use-template"), (use, { name, before, after, words }) => {
    const { before: bar, after: added, ...rest } = parts(use);
    setText(rest.name, name);
    setText(rest.words, words);
    bar.style.width = `${100 * before}%`;
    added.style.width = `${100 * (after - before)}%`;
  });
}
