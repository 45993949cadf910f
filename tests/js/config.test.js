import { lineSpan } from "/static/js/config_editor.js";
import { diffKind, faultsInWords, lastChangeInWords, stateInWords } from "/static/js/config_words.js";
import { equal, same, test } from "./harness.js";

test("a configuration's state names what is used and what is wished for", () => {
  const state = (fields) => stateInWords({ version: 4, applied: 3, error: "", state: "running", ...fields });
  same(state({ applied: 4 }), { text: "Version 4, in use", tone: "good" });
  same(state({}), { text: "Version 4 is on its way to the scheduler; version 3 is in use", tone: "wait" });
  same(state({ state: "stopped" }), { text: "Version 4 is used from the next start on; version 3 is in use", tone: "wait" });
  same(state({ applied: 0, state: "failed" }), { text: "Version 4 is used from the next start on; none has been used yet", tone: "wait" });
  same(state({ error: "no plugin X" }), { text: "Version 4 could not be used, version 3 is in use: no plugin X", tone: "bad" });
});

test("the last change is told with its moment in UTC", () => {
  equal(lastChangeInWords({ version: 1, changed_by: "", changed_at: null }), "version 1, as the run was made");
  equal(lastChangeInWords({ version: 2, changed_by: "olga", changed_at: 1_800_000_000 }), "version 2 by olga, 2027-01-15 08:00:00 UTC");
  equal(lastChangeInWords({ version: 2, changed_by: "", changed_at: 1_800_000_000 }), "version 2, 2027-01-15 08:00:00 UTC");
});

test("faults are counted", () => {
  equal(faultsInWords([{}]), "1 fault; nothing was changed");
  equal(faultsInWords([{}, {}]), "2 faults; nothing was changed");
});

test("lines of a difference", () => {
  same(["--- before", "+++ after", "@@ -1 +1 @@", "-a", "+b", " c", ""].map(diffKind), ["head", "head", "place", "removed", "added", "same", "same"]);
});

test("where a line lies in a text", () => {
  const text = "one\n\nthree";
  same(lineSpan(text, 1), { start: 0, end: 3 });
  same(lineSpan(text, 2), { start: 4, end: 4 });
  same(lineSpan(text, 3), { start: 5, end: 10 });
  same(lineSpan(text, 9), { start: 5, end: 10 });
  same(lineSpan("", 1), { start: 0, end: 0 });
});
