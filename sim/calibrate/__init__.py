"""Measuring a real GPU: matrix products, attention, copies, all-reduce and whole steps, into a device file.

`cases` says what can be measured, `sizes` what is, `samples` how often; a `Meter` measures it: that of torch
(`torchmeter` and what it uses), or a made-up one in tests. torch is imported inside of functions only.
"""
