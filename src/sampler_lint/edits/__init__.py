"""Edits of source text: libcst works out where and what, and a check of the result how safe."""
