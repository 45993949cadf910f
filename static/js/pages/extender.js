/** How another kube-scheduler asks this run; nothing on it moves. */
import { startRunPage } from "../shell.js";

startRunPage({});
