/** Pods at Permit, by gang, with the word that people have in it. */
import { DecideDialog } from "../decide_dialog.js";
import { count, countdown, plural } from "../format.js";
import { debounce, one, parts, setHidden, setText, stamp } from "../lib/dom.js";
import { Selection } from "../selection.js";
import { SelectionBar, setCheckbox } from "../selection_bar.js";
import { startRunPage } from "../shell.js";
import { VirtualList } from "../virtual_list.js";
import { drawEnded } from "../waiting_ended.js";
import { WaitingIndex } from "../waiting_index.js";
import { approvedInWords, resources } from "../approval_words.js";
import { isApplied, mineInWords, pendingInWords, sentInWords } from "../waiting_words.js";

const HEIGHTS = { wide: { gang: 56, pod: 46 }, narrow: { gang: 132, pod: 142 } };
/** On a phone who approved a gang has a line of its own. */
const STANDING_LINE = 20;
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
  #rows = new Map();

  start() {
    this.#shell = startRunPage({
      topics: ["waiting"],
      change: (data, topics) => {
        if (topics.has("waiting")) this.#show(data.waiting);
      },
    });
    const { api, clock } = this.#shell;
    this.#dialog = new DecideDialog(one("#decide-dialog"), {
      api,
      clock,
      row: (id) => this.#rows.get(id),
      sent: (...decision) => this.#decided(...decision),
    });
    this.#list = new VirtualList(one("#waiting-list"), {
      create: (kind) => this.#create(kind),
      render: (element, index) => this.#render(element, this.#items[index]),
      kind: (index) => this.#items[index].kind,
      key: (index) => this.#items[index].key,
      height: (index) => heightOf(this.#items[index]),
    });
    if (this.#shell.page.mayDecide) this.#startBar();
    this.#filter.addEventListener("input", debounce(() => this.#arrange(), TYPING_MS));
    NARROW.addEventListener("change", () => this.#arrange());
    setInterval(() => {
      if (document.hidden) return;
      if (this.#items.length) this.#list.render();
      this.#dialog.tick();
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
    this.#rows = rows;
    for (const [id, sent] of this.#sent) {
      const row = rows.get(id);
      if (!row || row.commit_seq > sent.commit) this.#sent.delete(id);
    }
    this.#index.sync(rows);
    this.#arrange();
    this.#dialog.rowsChanged();
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

  /** Somebody can still decide on it, and this person has nothing on its way. */
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
    const item = () => this.#items.find(({ key }) => key === element.dataset.key);
    if (!this.#shell.page.mayDecide) {
      text.look.addEventListener("click", () => this.#ask(item(), "look"));
      for (const part of [text.approve, text.deny, text.revoke]) part.remove();
      text.choose.parentElement.remove();
      return element;
    }
    text.look.remove();
    for (const verdict of ["approve", "deny", "revoke"]) text[verdict].addEventListener("click", () => this.#ask(item(), verdict));
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

  /**
   * The server took it; the scheduler has yet to apply it, and a frame will tell what came. Where that
   * frame was faster than the server's answer, there is nothing to wait for.
   */
  #decided(ids, verdict, words, commits) {
    for (const id of ids) {
      const known = this.#rows.get(id)?.commit_seq ?? 0;
      const commit = commits.get(id) ?? known;
      if (known <= commit) this.#sent.set(id, { verdict, commit });
    }
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
    setText(text.name, gang.label);
    text.name.title = gang.label;
    setText(text.requester, gang.requestedBy ? `asked for by ${gang.requestedBy}` : "");
    const full = gang.waiting >= gang.minMember;
    setText(text.count, `${count(gang.waiting)} of ${count(gang.minMember)} ${full ? "have a node" : "have a node so far"}`);
    setText(text.standing, gang.standing.length ? `approved by ${gang.standing.join(" and ")}, later members too` : "");
    text.standing.title = text.standing.textContent;
    text.fill.style.width = `${gang.minMember ? Math.min(100, (100 * gang.waiting) / gang.minMember) : 100}%`;
    element.classList.toggle("gang-full", full);
    this.#renderLeft(text.left, gang.deadline);
    const offers = gang.rows.map((row) => this.#offers(row));
    const offer = {
      approve: offers.some(({ approve }) => approve),
      deny: offers.some(({ deny }) => deny),
      revoke: offers.some(({ revoke }) => revoke),
    };
    this.#renderActions(text, offer, offer.approve || offer.deny ? "" : "decided");
    nameControls(text, `the gang ${gang.label}`);
  }

  #renderPod(element, { row, gang }) {
    const text = parts(element);
    element.classList.toggle("wait-member", Boolean(gang));
    text.pod.href = `${this.#shell.page.base}cycles/${row.cycle}/`;
    setText(text.pod, row.pod);
    text.pod.title = `${row.pod}\n${resources(row.requests ?? {})}`;
    setText(text.node, row.node);
    text.node.title = row.node;
    const mine = this.#sent.get(row.id);
    const sent = mine ? mineInWords(mine.verdict) : row.state === "sent" ? sentInWords(row) : "";
    const offer = this.#offers(row);
    const offered = offer.approve || offer.deny || offer.revoke || text.look;
    setText(text.pending, [pendingInWords(row) || "–", offered && sent, ...this.#aside(row, gang)].filter(Boolean).join(" · "));
    text.pending.title = [text.pending.textContent, ...row.pending.map(({ plugin, reason }) => `${plugin}: ${reason}`)].join("\n");
    this.#renderLeft(text.left, row.deadline);
    this.#renderActions(text, offer, offered ? "" : sent);
    nameControls(text, row.pod);
  }

  /** What else there is to know of a row that has room for a few words. */
  #aside(row, gang) {
    const own = this.#isOwn(row);
    return [
      row.state === "waiting" && row.approvers_needed > 1 && row.needs_approval ? approvedInWords(row) : "",
      own ? "your own request" : row.requested_by && row.requested_by !== gang?.requestedBy ? `asked for by ${row.requested_by}` : "",
    ];
  }

  /** This person asked for it, and somebody else has to approve it. */
  #isOwn(row) {
    return row.requested_by === this.#shell.page.user && row.terms?.requester_may_approve === false;
  }

  /**
   * What this person can still say of a row. A pod that waits for its gang alone can be denied, there
   * is nothing to approve; what was approved can be taken back by who did, until the pod is let go.
   */
  #offers(row) {
    if (this.#sent.has(row.id)) return {};
    const { user } = this.#shell.page;
    const given = (row.approvals ?? []).some((approval) => approval.user === user);
    const open = row.state === "waiting";
    return {
      approve: open && row.needs_approval && !given && !this.#isOwn(row),
      deny: open || isApplied(row),
      revoke: given && row.decision?.verdict !== "deny",
    };
  }

  #renderActions(text, { approve, deny, revoke }, sent) {
    if (text.approve) {
      setHidden(text.approve, !approve);
      setHidden(text.deny, !deny);
      setHidden(text.revoke, !revoke);
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

function heightOf({ kind, gang }) {
  if (!NARROW.matches) return HEIGHTS.wide[kind];
  return HEIGHTS.narrow[kind] + (kind === "gang" && gang.standing.length ? STANDING_LINE : 0);
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
  text.revoke?.setAttribute("aria-label", `Take back the approval of ${what}`);
  text.look?.setAttribute("aria-label", `Details of ${what}`);
  text.choose?.setAttribute("aria-label", `Select ${what}`);
}

new WaitingPage().start();
