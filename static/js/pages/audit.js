import { startRunPage } from "../shell.js";

startRunPage({});
