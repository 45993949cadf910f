"""The Django application: what the scheduler did, live, and what a person may decide."""
