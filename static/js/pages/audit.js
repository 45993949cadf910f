/** Who did what to a run. */
import { localTimes } from "../audit_times.js";
import { startRunPage } from "../shell.js";

startRunPage({});
localTimes();
