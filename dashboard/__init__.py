"""The Django app: rows, frames, pages, and the adapters that tie them to the scheduler core."""
