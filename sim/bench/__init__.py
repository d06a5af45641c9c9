"""How fast the simulator is: `python -m sim.bench [CASE]`, or `make bench [CASE=name]`.

Each case runs in a process of its own, which also measures bare SimPy time-outs (one process that waits a
million times), so that figures from different machines can be compared.
"""
