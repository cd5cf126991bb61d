"""Runs a sampler class in the mind: its own statements, on small numbers, for each rank.

``values`` is what programs are made of here; ``interpreter`` holds one process and its calls, on
``statements``, ``expressions`` (each looks at a node's parts once, however often it runs) and the
global ``names``. ``library`` finds what a function outside
the tree does: ``builtin``, ``standard``, ``arrays``, and ``methods`` and ``items`` of values;
``agreement`` is what ranks tell each other, ``prelude`` torch's samplers. ``set_up`` makes
arguments, ``trials`` builds a class for a few worlds and counts, ``epochs`` sets the epoch of an
object and looks what ``chance`` then rests on, all within the ``budget``.

Nothing of the user's is compiled, imported or run by Python: what this small interpreter does not
know raises :class:`~.errors.CannotTellError`, and rules stay silent.
"""
