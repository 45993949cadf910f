/** Who did what: rendered by the server in UTC, shown in this machine's time like every other page. */
import { dateTime, zoneInWords } from "../format.js";
import { one, setText } from "../lib/dom.js";
import { startRunPage } from "../shell.js";

startRunPage({});

for (const time of document.querySelectorAll(".audit-when time")) {
  time.title = `${time.textContent} UTC`;
  setText(time, dateTime(new Date(time.dateTime)));
}
setText(one("#audit-zone"), zoneInWords());
