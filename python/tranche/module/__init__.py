"""PyTorch modules as models of the library: torch.export's graph becomes units of ops.

export    the graph, with rows that are symbolic
shapes    which dimension of a tensor is made of rows
cuts      which nodes become a unit
table     which of PyTorch's operators are ops of the library
lower     nodes become steps of a unit
regions   operators that run in PyTorch, and the check that they keep rows apart
losses    the operator that the graph ends with
build     units become a tr_model
"""
