"""Configurations and plugins to start from."""
