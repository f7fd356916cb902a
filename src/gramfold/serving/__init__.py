"""Heads over HTTP."""
