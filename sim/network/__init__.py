"""Bytes on links: one flow network that everything shares, exactly and max-min fair."""
