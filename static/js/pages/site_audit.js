/** Who did what on the whole site. */
import { localTimes } from "../audit_times.js";
import { startChrome } from "../shell.js";

startChrome();
localTimes();
