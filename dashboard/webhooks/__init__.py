"""Signed messages to other people's servers when a gang waits, is decided or expires."""
