"""The scheduling framework: statuses, cycle state, node columns and plugin interfaces."""
