"""Questions of many runs: one scenario changed along axes, each change at several seeds."""
