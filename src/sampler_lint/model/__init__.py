"""What the code does with data: facts of one file, the linked project, and where values flow.

This package knows torch and the frameworks (``catalog``) and no rule.
"""
