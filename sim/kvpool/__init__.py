"""Computed KV blocks that may be used again: what is cached where, and what is evicted first."""
