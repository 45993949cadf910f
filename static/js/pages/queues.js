/** The four parts of the SchedulingQueue, live. */
import { setCut } from "../cut_text.js";
import { age, count, countdown, plural } from "../format.js";
import { one, parts, setHidden, setText, stamp } from "../lib/dom.js";
import { QueueRows, RANGE } from "../queue_rows.js";
import { startRunPage } from "../shell.js";
import { VirtualList } from "../virtual_list.js";

const ROW_HEIGHT = 50;
const TICK_MS = 200;
/** Rows are asked for once the list has rested this long: a fling goes by fifty ranges. */
const REST_MS = 80;
const OVER = "now";

class QueueSection {
  #name;
  #parts;
  #rows = new QueueRows();
  #list;
  #shell;
  #inView = { start: 0, end: 0 };
  #resting = 0;

  constructor(section, shell) {
    this.#name = section.dataset.queue;
    this.#parts = parts(section);
    this.#shell = shell;
    this.#list = new VirtualList(this.#parts.list, {
      create: () => stamp("queue-row-template"),
      render: (row, index) => this.#render(row, index),
      kind: () => "pod",
      key: (index) => this.#rows.get(index)?.uid ?? `#${index}`,
      height: ROW_HEIGHT,
      range: (start, end) => this.#moved(start, end),
    });
  }

  show(rows, total) {
    this.#rows.setHead(rows, total);
    setText(this.#parts.depth, count(total));
    setHidden(this.#parts.list, total === 0);
    setHidden(this.#parts.empty, total !== 0);
    this.#list.setCount(this.#rows.total);
  }

  tick() {
    if (this.#rows.total) this.#list.render();
  }

  #moved(start, end) {
    const same = start === this.#inView.start && end === this.#inView.end;
    if (same && this.#resting) return;
    this.#inView = { start, end };
    clearTimeout(this.#resting);
    this.#resting = setTimeout(() => {
      this.#resting = 0;
      this.#fill(start, end);
    }, REST_MS);
  }

  async #fill(start, end) {
    for (const offset of this.#rows.wanted(start, end, performance.now() / 1000)) {
      try {
        const answer = await this.#shell.api.get("queues", { queue: this.#name, offset, limit: RANGE });
        this.#rows.setRange(offset, answer.rows);
        this.#list.render();
        this.#shell.notices.clear("queues");
      } catch (error) {
        this.#shell.notices.set("queues", { text: `Rows from ${count(offset + 1)} could not be loaded: ${error.message}`, bad: true });
      }
    }
  }

  #render(element, index) {
    const row = this.#rows.get(index);
    const text = parts(element);
    element.classList.toggle("queue-row-loading", !row);
    setText(text.position, count(index + 1));
    setText(text.pod, row ? row.pod : "…");
    // A pod that was never tried has no decision to look at.
    if (row?.attempts) text.pod.href = `${this.#shell.page.base}cycles/?${new URLSearchParams({ q: row.pod })}`;
    else text.pod.removeAttribute("href");
    setText(text.attempts, row ? attemptsOf(row) : "");
    setText(text.time, row ? timeOf(row, this.#shell.clock) : "");
    element.classList.toggle("queue-row-due", row?.backoff_until != null && text.time.textContent === OVER);
    setCut(text.reason, row ? reasonOf(row) : "");
    text.pod.title = row ? [row.pod, row.pod_group && `gang ${row.pod_group}`].filter(Boolean).join(" · ") : "";
  }
}

function attemptsOf(row) {
  const tries = row.attempts ? plural(row.attempts, "attempt") : "";
  return [row.priority ? `priority ${count(row.priority)}` : "", tries].filter(Boolean).join(" · ");
}

function timeOf(row, clock) {
  if (row.backoff_until !== null) {
    const left = clock.until(row.backoff_until);
    return left > 0 ? `in ${countdown(left)}` : OVER;
  }
  return `for ${age(Math.max(0, clock.now() - row.added_at))}`;
}

function reasonOf(row) {
  const group = row.pod_group ? `gang ${row.pod_group}` : "";
  const reason = row.reason ? [row.plugin, row.reason].filter(Boolean).join(": ") : row.plugin;
  return [reason, group].filter(Boolean).join(" · ");
}

const shell = startRunPage({
  topics: ["queues"],
  change(data, topics) {
    if (!topics.has("queues")) return;
    const frame = data.queues;
    if (Number.isFinite(frame.at)) shell.clock.sample(frame.at);
    for (const [name, section] of sections) section.show(frame[name], frame.depths[name]);
    setText(one("#queues-note"), noteFor(frame.depths));
  },
});
const sections = new Map([...document.querySelectorAll("[data-queue]")].map((section) => [section.dataset.queue, new QueueSection(section, shell)]));

function noteFor({ in_flight: inFlight, waiting, ...queued }) {
  const all = queued.active + queued.backoff + queued.unschedulable + queued.gated;
  return `${plural(all, "pod")} queued, ${count(inFlight)} in flight, ${count(waiting)} held at Permit`;
}

setInterval(() => {
  if (!document.hidden) for (const section of sections.values()) section.tick();
}, TICK_MS);
