"""The table between the towers: columns, units, phases, metrics, and the Recorder that fills them."""
