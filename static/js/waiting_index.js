/**
 * Waiting rows as the page lists them, kept up to date row by row: with 10,000 of them a frame costs
 * what it changes, and one quick look at every row. Pure.
 */
import { isOpen } from "./store.js";

export class WaitingIndex {
  /** id -> {row, name, text, item}: `name` sorts as people count, `text` is what a search looks in. */
  #entries = new Map();
  /** key of a gang -> {entries: Map(id -> entry), members, deadline, name, head} */
  #gangs = new Map();
  #gangOrder = [];
  #singles = [];

  /** Take over `rows` (id -> row). Rows that are the same objects as before cost a look each. */
  sync(rows) {
    const changed = { singles: new Map(), gangs: new Set() };
    let open = 0;
    for (const row of rows.values()) {
      if (isOpen(row)) open += 1;
      if (this.#entries.get(row.id)?.row !== row) this.#replace(row.id, isOpen(row) ? row : null, changed);
    }
    if (this.#entries.size > open) {
      for (const id of [...this.#entries.keys()]) if (!rows.has(id)) this.#replace(id, null, changed);
    }
    this.#mergeSingles(changed.singles);
    for (const key of changed.gangs) this.#rebuildGang(key);
    if (changed.gangs.size) {
      this.#gangOrder = [...this.#gangs.values()].sort(earliestGang);
      this.#labelGangs();
    }
  }

  /** Pods that wait, and gangs that they belong to. */
  get pods() {
    return this.#entries.size;
  }

  get gangs() {
    return this.#gangs.size;
  }

  /** The row, or undefined where it does not wait (any more). */
  row(id) {
    return this.#entries.get(id)?.row;
  }

  /**
   * Items in display order: {kind: "gang", key, gang} is followed by its pods, {kind: "pod", key,
   * row, gang}; pods without a gang (gang: null) come last. The earliest deadline comes first.
   * gang: {name, uid, label, rows, waiting, minMember, deadline, needsApproval, undecided, requestedBy, standing};
   * `requestedBy` is the one person who asked for all of it, or ""; `standing`: who has approved the
   * whole of it, members that come later included.
   */
  items(needle = "") {
    const wanted = needle.trim().toLowerCase();
    const items = [];
    for (const { head, members } of this.#gangOrder) {
      const shown = wanted ? members.filter(({ text }) => text.includes(wanted)) : members;
      if (shown.length === 0) continue;
      items.push(head);
      for (const { item } of shown) items.push(item);
    }
    for (const { text, item } of this.#singles) if (!wanted || text.includes(wanted)) items.push(item);
    return items;
  }

  #replace(id, row, changed) {
    const known = this.#entries.get(id);
    if (known) this.#touch(known, null, changed);
    if (!row) {
      this.#entries.delete(id);
      return;
    }
    const entry = { row, name: sortable(row.pod), text: textOf(row), item: { kind: "pod", key: `pod:${id}`, row, gang: null } };
    this.#entries.set(id, entry);
    this.#touch(entry, entry, changed);
  }

  /** Note that `entry` goes (now: null) or comes. */
  #touch({ row }, now, changed) {
    if (!row.pod_group) {
      changed.singles.set(row.id, now);
      return;
    }
    const key = gangKey(row);
    if (!this.#gangs.has(key)) this.#gangs.set(key, { entries: new Map() });
    const { entries } = this.#gangs.get(key);
    if (now) entries.set(row.id, now);
    else entries.delete(row.id);
    changed.gangs.add(key);
  }

  #mergeSingles(changed) {
    if (changed.size === 0) return;
    const stay = this.#singles.filter(({ row }) => !changed.has(row.id));
    const come = [...changed.values()].filter((entry) => entry !== null).sort(earliest);
    this.#singles = merged(stay, come);
  }

  #rebuildGang(key) {
    const { entries } = this.#gangs.get(key);
    if (entries.size === 0) {
      this.#gangs.delete(key);
      return;
    }
    const members = [...entries.values()].sort(byName);
    const gang = describe(members.map(({ row }) => row));
    for (const entry of members) entry.item = { ...entry.item, gang };
    this.#gangs.set(key, { entries, members, deadline: gang.deadline, name: sortable(gang.name), head: { kind: "gang", key: `gang:${key}`, gang } });
  }

  /** A gang says its uid where another one has its name. */
  #labelGangs() {
    const names = new Map();
    for (const { head } of this.#gangOrder) names.set(head.gang.name, (names.get(head.gang.name) ?? 0) + 1);
    for (const { head: { gang } } of this.#gangOrder) {
      gang.label = names.get(gang.name) > 1 && gang.uid ? `${gang.name} (${gang.uid.slice(0, 8)})` : gang.name;
    }
  }
}

/** A gang of scheduling.x-k8s.io and a native one may share a name: their uids differ. */
function gangKey(row) {
  return row.gang_uid ? `${row.pod_group} ${row.gang_uid}` : row.pod_group;
}

function describe(rows) {
  const [{ pod_group: name, gang_uid: uid = "", requested_by: one }] = rows;
  return {
    name,
    uid,
    label: name,
    rows,
    waiting: rows.length,
    minMember: Math.max(...rows.map((row) => row.group_min_member)),
    deadline: Math.min(...rows.map((row) => row.deadline)),
    needsApproval: rows.some((row) => row.needs_approval),
    undecided: rows.filter((row) => row.state === "waiting").length,
    requestedBy: rows.every((row) => row.requested_by === one) ? one : "",
    standing: standingOf(rows),
  };
}

function standingOf(rows) {
  const users = new Set();
  for (const row of rows) for (const { user, gang } of row.approvals ?? []) if (gang) users.add(user);
  return [...users].sort();
}

/** Two sorted lists as one. Only the places of the new ones are searched for. */
function merged(stay, come) {
  const out = [];
  let from = 0;
  for (const entry of come) {
    const to = placeOf(stay, entry, from);
    for (; from < to; from += 1) out.push(stay[from]);
    out.push(entry);
  }
  for (; from < stay.length; from += 1) out.push(stay[from]);
  return out;
}

/** Where `entry` belongs in the sorted `list`, at `low` or later. */
function placeOf(list, entry, low) {
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (earliest(list[middle], entry) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function earliest(a, b) {
  return a.row.deadline - b.row.deadline || byName(a, b);
}

function earliestGang(a, b) {
  return a.deadline - b.deadline || byName(a, b);
}

function byName(a, b) {
  return a.name < b.name ? -1 : Number(a.name > b.name);
}

/** A name whose plain order is that of people: w-2 before w-10. Comparing these is cheap. */
function sortable(name) {
  return name.replaceAll(/\d+/g, (digits) => digits.padStart(12, "0"));
}

function textOf(row) {
  return [row.pod, row.pod_group, row.node, row.requested_by].join("\n").toLowerCase();
}
