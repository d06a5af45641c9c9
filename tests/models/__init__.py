"""Naive twins of the engine's clever parts: lists and loops, slow, written to be obviously right."""
