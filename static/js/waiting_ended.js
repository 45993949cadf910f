/** The waits that ended lately: what came of them, and by whom. */
import { clockTime, waitState } from "./format.js";
import { keepChildren, one, parts, setHidden, setText, stamp } from "./lib/dom.js";
import { isOpen, latestEndFirst } from "./store.js";
import { endInWords } from "./waiting_words.js";

const SHOWN = 40;

export function drawEnded(rows, base) {
  const ended = [...rows].filter((row) => !isOpen(row)).sort(latestEndFirst);
  setHidden(one("#ended-empty"), ended.length > 0);
  keepChildren(one("#ended"), ended.slice(0, SHOWN), () => stamp("ended-template"), (item, row) => {
    const text = parts(item);
    text.state.dataset.outcome = row.state;
    setText(text.state, waitState(row.state));
    text.pod.href = `${base}cycles/${row.cycle}/`;
    setText(text.pod, row.pod);
    setText(text.node, row.pod_group ? `${row.node} · gang ${row.pod_group}` : row.node);
    setText(text.who, endInWords(row));
    setText(text.at, clockTime(row.resolved_at));
  });
}
