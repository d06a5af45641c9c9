"""Topology files small enough to count by hand."""

HEAD = """\
sim: 1
name: by-hand
source: ["made up for tests"]
nodes:
  - {name: dgx, type: dgx-b200, count: 4}
fabric:
  kind: explicit
  link: infiniband-ndr
  rails: 8
"""
TWO_LEAVES = (
    HEAD
    + """\
  switches:
    - {name: leaf-0, tier: 1, radix: 64}
    - {name: leaf-1, tier: 1, radix: 64}
    - {name: spine-0, tier: 2, radix: 64}
    - {name: spine-1, tier: 2, radix: 64}
  cables:
    - {from: dgx/0-1/0-7, to: leaf-0, length: 3 m}
    - {from: leaf-1, to: dgx/2-3/0-7, length: 5 m}
    - {from: leaf-0, to: spine-0, count: 4, length: 20 m}
    - {from: leaf-0, to: spine-1, count: 4, length: 20 m}
    - {from: leaf-1, to: spine-0, count: 4, length: 30 m}
    - {from: leaf-1, to: spine-1, count: 4, length: 20 m}
"""
)
PLANES = (
    HEAD.replace("rails: 8", "rails: 2")
    + """\
  switches:
    - {name: red-0, tier: 1, radix: 64}
    - {name: red-1, tier: 1, radix: 64}
    - {name: blue-0, tier: 1, radix: 64}
    - {name: blue-1, tier: 1, radix: 64}
    - {name: red, tier: 2, radix: 64}
    - {name: blue, tier: 2, radix: 64}
  cables:
    - {from: dgx/0-1/0-3, to: red-0}
    - {from: dgx/2-3/0-3, to: red-1}
    - {from: dgx/0-1/4-7, to: blue-0}
    - {from: dgx/2-3/4-7, to: blue-1}
    - {from: red-0, to: red, count: 8}
    - {from: red-1, to: red, count: 8}
    - {from: blue-0, to: blue, count: 8}
    - {from: blue-1, to: blue, count: 8}
"""
)
DIRECT = """\
sim: 1
name: pair
source: ["made up for tests"]
nodes:
  - {name: dgx, type: dgx-b200, count: 2}
fabric: {kind: direct, link: infiniband-ndr, rails: 8, cables: {node_leaf: 2 m}}
"""
