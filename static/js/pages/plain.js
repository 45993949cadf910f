import { startChrome } from "../shell.js";

startChrome();
