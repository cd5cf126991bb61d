"""Python files as data: the nodes that rules look at, and how source text is lowered to them."""
