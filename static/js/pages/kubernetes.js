/** How kubectl finds this sandbox; nothing on it moves. */
import { startRunPage } from "../shell.js";

startRunPage({});
