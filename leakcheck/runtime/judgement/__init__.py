"""Readings in, growth that is confirmed or acquitted out: pure but for the readings it asks for."""
