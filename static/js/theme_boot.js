// Before the first paint, so that a remembered theme does not flash. A classic script: modules wait.
(function () {
  try {
    const theme = localStorage.getItem("kubesched.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage is off: the system's preference decides.
  }
})();
