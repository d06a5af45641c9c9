"""The shape of the cluster: nodes, switches and cables as a graph, and what can be read off it."""
