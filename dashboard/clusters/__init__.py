"""Real clusters: how they are reached, their pages, and runs on them."""
