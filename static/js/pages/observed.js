/** One observed pod; the server has written it. A later word on the same pod is fetched. */
import { startRunPage } from "../shell.js";

const { pod, commit } = document.body.dataset;

startRunPage({
  topics: ["observe"],
  change: (data, topics) => {
    if (!topics.has("observe")) return;
    const row = data.observe.pods.find(({ id }) => String(id) === pod);
    if (row && row.commit_seq > Number(commit)) location.reload();
  },
});
