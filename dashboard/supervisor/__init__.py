"""Starts, watches and stops the product's processes; plain code that knows no Django."""
