/** Times that the server wrote in UTC, in this machine's time like on every other page. */
import { dateTime, zoneInWords } from "./format.js";
import { one, setText } from "./lib/dom.js";

export function localTimes() {
  for (const time of document.querySelectorAll(".audit-when time")) {
    time.title = `${time.textContent} UTC`;
    setText(time, dateTime(new Date(time.dateTime)));
  }
  setText(one("#audit-zone"), zoneInWords());
}
