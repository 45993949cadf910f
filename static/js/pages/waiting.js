/** Pods at Permit, by gang, with the word that people have in it. */
import { DecideDialog } from "../decide_dialog.js";
import { amount, count, countdown, plural } from "../format.js";
import { debounce, one, parts, setHidden, setText, stamp } from "../lib/dom.js";
import { Selection } from "../selection.js";
import { SelectionBar, setCheckbox } from "../selection_bar.js";
import { startRunPage } from "../shell.js";
import { VirtualList } from "../virtual_list.js";
import { drawEnded } from "../waiting_ended.js";
import { WaitingIndex } from "../waiting_index.js";
import { approvedInWords } from "../approval_words.js";
import { pendingInWords, sentInWords } from "../waiting_words.js";

const HEIGHTS = { wide: { gang: 56, pod: 46 }, narrow: { gang: 132, pod: 142 } };
const NARROW = matchMedia("(max-width: 52rem)");
const TICK_MS = 250;
const HURRY_SECONDS = 30;
const TYPING_MS = 120;

class WaitingPage {
  #shell;
  #list;
  #dialog;
  #bar;
  #items = [];
  #index = new WaitingIndex();
  #selection = new Selection();
  #sent = new Map();
  #loading = null;
  #filter = one("#waiting-filter");

  start() {
    this.#shell = startRunPage({
      topics: ["waiting"],
      change: (data, topics) => {
        if (topics.has("waiting")) this.#show(data.waiting);
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
    if (this.#shell.page.mayDecide) this.#startBar();
    this.#filter.addEventListener("input", debounce(() => this.#arrange(), TYPING_MS));
    NARROW.addEventListener("change", () => this.#arrange());
    setInterval(() => {
      if (!document.hidden && this.#items.length) this.#list.render();
    }, TICK_MS);
  }

  #startBar() {
    this.#bar = new SelectionBar(one("#selection-bar"), {
      all: (chosen) => this.#choose(this.#shownIds(), chosen),
      approve: () => this.#dialog.forSelection(this.#chosenRows().filter((row) => row.needs_approval), "approve"),
      deny: () => this.#dialog.forSelection(this.#chosenRows(), "deny"),
      clear: () => {
        this.#selection.clear();
        this.#redraw();
      },
    });
  }

  #show({ rows, loading }) {
    this.#loading = loading;
    for (const [id, sent] of this.#sent) {
      const row = rows.get(id);
      if (!row || row.commit_seq > sent.commit || row.state !== "waiting") this.#sent.delete(id);
    }
    this.#index.sync(rows);
    this.#arrange();
    drawEnded(rows.values(), this.#shell.page.base);
  }

  #arrange() {
    this.#items = this.#index.items(this.#filter.value);
    const { pods, gangs } = this.#index;
    setText(one("#waiting-note"), noteOf(pods, gangs, this.#loading));
    const empty = one("#waiting-empty");
    setHidden(one("#waiting-list"), this.#items.length === 0);
    setHidden(empty, this.#items.length > 0);
    setText(parts(empty).title, pods ? "Nothing matches the filter" : "Nobody waits");
    setHidden(parts(empty).text, pods > 0);
    this.#selection.prune((id) => this.#mayChoose(this.#index.row(id)));
    this.#list.setCount(this.#items.length);
    this.#showBar();
  }

  #redraw() {
    this.#list.render();
    this.#showBar();
  }

  #showBar() {
    if (!this.#bar) return;
    const ids = this.#shownIds();
    this.#bar.show({
      shown: ids.length,
      filtered: this.#filter.value.trim() !== "",
      state: this.#selection.of(ids),
      chosen: this.#selection.size,
      approvable: this.#chosenRows().filter((row) => row.needs_approval).length,
    });
  }

  /** A person can decide on it, and nobody has yet. */
  #mayChoose(row) {
    return row !== undefined && row.state === "waiting" && !this.#sent.has(row.id);
  }

  #shownIds() {
    const ids = [];
    for (const { kind, row } of this.#items) if (kind === "pod" && this.#mayChoose(row)) ids.push(row.id);
    return ids;
  }

  #chosenRows() {
    return this.#selection.ids.map((id) => this.#index.row(id)).filter((row) => this.#mayChoose(row));
  }

  #choose(ids, chosen) {
    this.#selection.set(ids, chosen);
    this.#redraw();
  }

  #create(kind) {
    const element = stamp(kind === "gang" ? "gang-template" : "wait-template");
    const text = parts(element);
    if (!this.#shell.page.mayDecide) {
      text.actions.remove();
      text.choose.parentElement.remove();
      return element;
    }
    const item = () => this.#items.find(({ key }) => key === element.dataset.key);
    text.approve.addEventListener("click", () => this.#ask(item(), "approve"));
    text.deny.addEventListener("click", () => this.#ask(item(), "deny"));
    text.choose.addEventListener("change", () => this.#choose(this.#idsOf(item()), text.choose.checked));
    return element;
  }

  /** Of a pod, or of a whole gang, whatever of it the filter shows. */
  #idsOf(item) {
    const rows = item?.kind === "gang" ? item.gang.rows : item ? [item.row] : [];
    return rows.filter((row) => this.#mayChoose(row)).map(({ id }) => id);
  }

  #ask(item, verdict) {
    if (!item) return;
    if (item.kind === "gang") this.#dialog.forGang(item.gang, verdict);
    else this.#dialog.forPod(item.row, verdict);
  }

  /** The server took it; the scheduler has yet to apply it, and a frame will tell what came. */
  #decided(ids, verdict, words) {
    for (const id of ids) this.#sent.set(id, { verdict, commit: this.#index.row(id)?.commit_seq ?? 0 });
    this.#selection.set(ids, false);
    if (words) this.#shell.notices.set("decided", { text: words, action: { label: "Dismiss", run: () => this.#shell.notices.clear("decided") } });
    else this.#shell.notices.clear("decided");
    this.#redraw();
  }

  #render(element, item) {
    element.dataset.key = item.key;
    if (item.kind === "gang") this.#renderGang(element, item.gang);
    else this.#renderPod(element, item);
    const { choose } = parts(element);
    if (!choose) return;
    const ids = this.#idsOf(item);
    const state = this.#selection.of(ids);
    setCheckbox(choose, state);
    choose.disabled = ids.length === 0;
    element.classList.toggle("wait-chosen", state === "all");
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
    const undecided = gang.rows.some((row) => this.#mayChoose(row));
    this.#renderActions(text, undecided, gang.needsApproval, undecided ? "" : "decided");
    nameControls(text, `the gang ${gang.name}`);
  }

  #renderPod(element, { row, gang }) {
    const text = parts(element);
    element.classList.toggle("wait-member", Boolean(gang));
    text.pod.href = `${this.#shell.page.base}cycles/${row.cycle}/`;
    setText(text.pod, row.pod);
    text.pod.title = requestsInWords(row);
    setText(text.node, row.node);
    const approved = row.approvers_needed > 1 && row.needs_approval ? ` · ${approvedInWords(row)}` : "";
    setText(text.pending, `${pendingInWords(row) || "–"}${approved}${row.requested_by && row.requested_by !== gang?.requestedBy ? ` · asked for by ${row.requested_by}` : ""}`);
    text.pending.title = row.pending.map(({ plugin, reason }) => `${plugin}: ${reason}`).join("\n");
    this.#renderLeft(text.left, row.deadline);
    const mine = this.#sent.get(row.id);
    const sent = mine ? `${mine.verdict === "approve" ? "approval" : "denial"} sent` : row.state === "sent" ? sentInWords(row) : "";
    this.#renderActions(text, !sent, row.needs_approval, sent);
    nameControls(text, row.pod);
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

/** "10,000 pods, 40 gangs", and how many are here while the rest is on its way. */
function noteOf(pods, gangs, loading) {
  const here = [pods || loading ? plural(loading ?? pods, "pod") : "", gangs ? plural(gangs, "gang") : ""];
  if (loading) here.push(`${count(pods)} loaded so far`);
  return here.filter(Boolean).join(", ");
}

function nameControls(text, what) {
  text.approve?.setAttribute("aria-label", `Approve ${what}`);
  text.deny?.setAttribute("aria-label", `Deny ${what}`);
  text.choose?.setAttribute("aria-label", `Select ${what}`);
}

function requestsInWords(row) {
  return Object.entries(row.requests).map(([name, value]) => `${name} ${amount(name, value)}`).join(", ");
}

new WaitingPage().start();
