"""What every adapter of a port must do. New adapters join the fixtures, not the tests."""
