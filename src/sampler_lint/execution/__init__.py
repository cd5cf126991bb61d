"""Runs a sampler class in the mind: its own statements, on small numbers, for each rank.

``values`` is what programs are made of here, ``interpreter`` walks the syntax tree,
``library`` and ``prelude`` are what torch, numpy and the builtins do, ``trials`` builds a class
for a few worlds and counts. Nothing of the user's is compiled, imported or run by Python: what
this small interpreter does not know raises :class:`~.values.CannotTellError`, and rules stay
silent.
"""
