/** Pods at Permit, by gang, with the word that people have in it. */
import { DecideDialog } from "../decide_dialog.js";
import { amount, count, countdown, plural } from "../format.js";
import { debounce, one, parts, setHidden, setText, stamp } from "../lib/dom.js";
import { startRunPage } from "../shell.js";
import { isOpen } from "../store.js";
import { VirtualList } from "../virtual_list.js";
import { drawEnded } from "../waiting_ended.js";
import { pendingInWords, sentInWords, waitingItems } from "../waiting_groups.js";

const HEIGHTS = { wide: { gang: 56, pod: 46 }, narrow: { gang: 132, pod: 142 } };
const NARROW = matchMedia("(max-width: 52rem)");
const TICK_MS = 250;
const HURRY_SECONDS = 30;
const TYPING_MS = 120;

class WaitingPage {
  #shell;
  #list;
  #dialog;
  #items = [];
  #rows = new Map();
  #sent = new Map();
  #filter = one("#waiting-filter");

  start() {
    this.#shell = startRunPage({
      topics: ["waiting"],
      change: (data, topics) => {
        if (topics.has("waiting")) this.#show(data.waiting.rows);
      },
    });
    this.#dialog = new DecideDialog(one("#decide-dialog"), this.#shell.api, (ids, verdict, words) => this.#decided(ids, verdict, words));
    this.#list = new VirtualList(one("#waiting-list"), {
      create: (kind) => this.#create(kind),
      render: (element, index) => this.#render(element, this.#items[index]),
      kind: (index) => this.#items[index].kind,
      key: (index) => this.#items[index].key,
      height: (index) => HEIGHTS[NARROW.matches ? "narrow" : "wide"][this.#items[index].kind],
    });
    this.#filter.addEventListener("input", debounce(() => this.#arrange(), TYPING_MS));
    NARROW.addEventListener("change", () => this.#arrange());
    setInterval(() => {
      if (!document.hidden && this.#items.length) this.#list.render();
    }, TICK_MS);
  }

  #show(rows) {
    this.#rows = rows;
    for (const [id, sent] of this.#sent) {
      const row = rows.get(id);
      if (!row || row.commit_seq > sent.commit || row.state !== "waiting") this.#sent.delete(id);
    }
    this.#arrange();
    drawEnded(rows.values(), this.#shell.page.base);
  }

  #arrange() {
    this.#items = waitingItems(this.#rows.values(), this.#filter.value);
    const open = [...this.#rows.values()].filter(isOpen).length;
    const gangs = new Set([...this.#rows.values()].filter((row) => isOpen(row) && row.pod_group).map((row) => row.pod_group)).size;
    setText(one("#waiting-note"), open ? [plural(open, "pod"), gangs ? plural(gangs, "gang") : ""].filter(Boolean).join(", ") : "");
    const empty = one("#waiting-empty");
    setHidden(one("#waiting-list"), this.#items.length === 0);
    setHidden(empty, this.#items.length > 0);
    if (open) setText(parts(empty).title, "Nothing matches the filter");
    else setText(parts(empty).title, "Nobody waits");
    setHidden(parts(empty).text, open > 0);
    this.#list.setCount(this.#items.length);
  }

  #create(kind) {
    const element = stamp(kind === "gang" ? "gang-template" : "wait-template");
    const text = parts(element);
    if (!this.#shell.page.mayDecide) {
      text.actions.remove();
      return element;
    }
    const item = () => this.#items.find(({ key }) => key === element.dataset.key);
    text.approve.addEventListener("click", () => this.#ask(item(), "approve"));
    text.deny.addEventListener("click", () => this.#ask(item(), "deny"));
    return element;
  }

  #ask(item, verdict) {
    if (!item) return;
    if (item.kind === "gang") this.#dialog.forGang(item.gang, verdict);
    else this.#dialog.forPod(item.row, verdict);
  }

  /** The server took it; the scheduler has yet to apply it, and a frame will tell what came. */
  #decided(ids, verdict, words) {
    for (const id of ids) this.#sent.set(id, { verdict, commit: this.#rows.get(id)?.commit_seq ?? 0 });
    if (words) this.#shell.notices.set("decided", { text: words, action: { label: "Dismiss", run: () => this.#shell.notices.clear("decided") } });
    else this.#shell.notices.clear("decided");
    this.#list.render();
  }

  #render(element, item) {
    element.dataset.key = item.key;
    if (item.kind === "gang") this.#renderGang(element, item.gang);
    else this.#renderPod(element, item);
  }

  #renderGang(element, gang) {
    const text = parts(element);
    setText(text.name, gang.name);
    setText(text.requester, gang.requestedBy ? `asked for by ${gang.requestedBy}` : "");
    const full = gang.waiting >= gang.minMember;
    setText(text.count, `${count(gang.waiting)} of ${count(gang.minMember)} ${full ? "have a node" : "have a node so far"}`);
    text.fill.style.width = `${gang.minMember ? Math.min(100, (100 * gang.waiting) / gang.minMember) : 100}%`;
    element.classList.toggle("gang-full", full);
    this.#renderLeft(text.left, gang.deadline);
    const undecided = gang.rows.some((row) => row.state === "waiting" && !this.#sent.has(row.id));
    this.#renderActions(text, undecided, gang.needsApproval, undecided ? "" : "decided");
    nameButtons(text, `the gang ${gang.name}`);
  }

  #renderPod(element, { row, gang }) {
    const text = parts(element);
    element.classList.toggle("wait-member", Boolean(gang));
    text.pod.href = `${this.#shell.page.base}cycles/${row.cycle}/`;
    setText(text.pod, row.pod);
    text.pod.title = requestsInWords(row);
    setText(text.node, row.node);
    setText(text.pending, `${pendingInWords(row) || "–"}${row.requested_by && row.requested_by !== gang?.requestedBy ? ` · asked for by ${row.requested_by}` : ""}`);
    text.pending.title = row.pending.map(({ plugin, reason }) => `${plugin}: ${reason}`).join("\n");
    this.#renderLeft(text.left, row.deadline);
    const mine = this.#sent.get(row.id);
    const sent = mine ? `${mine.verdict === "approve" ? "approval" : "denial"} sent` : row.state === "sent" ? sentInWords(row) : "";
    this.#renderActions(text, !sent, row.needs_approval, sent);
    nameButtons(text, row.pod);
  }

  /** A pod that waits for its gang alone can be denied; there is nothing to approve. */
  #renderActions(text, offered, approvable, sent) {
    if (text.actions) {
      setHidden(text.actions, !offered);
      setHidden(text.approve, !approvable);
    }
    setHidden(text.sent, !sent);
    setText(text.sent, sent);
  }

  #renderLeft(element, deadline) {
    const left = this.#shell.clock.until(deadline);
    setText(element, left > 0 ? countdown(left) : "time is up");
    element.classList.toggle("wait-hurry", left < HURRY_SECONDS);
  }
}

function nameButtons(text, what) {
  text.approve?.setAttribute("aria-label", `Approve ${what}`);
  text.deny?.setAttribute("aria-label", `Deny ${what}`);
}

function requestsInWords(row) {
  return Object.entries(row.requests).map(([name, value]) => `${name} ${amount(name, value)}`).join(", ");
}

new WaitingPage().start();
