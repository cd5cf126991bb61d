"""The files of a tree: which of them matter, what each imports, which versions it asks for."""
