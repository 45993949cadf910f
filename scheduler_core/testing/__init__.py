"""Public helpers for tests of schedulers and plugins: builders, clocks, observers, checks."""
