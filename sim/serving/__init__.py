"""From arrival to last token: routing, prefill, handoff, decode. SimPy processes are the model."""
