"""Runs the plugins of one profile: every extension point, and pods that wait at Permit."""
