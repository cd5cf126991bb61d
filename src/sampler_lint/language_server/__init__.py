"""The language server: findings as diagnostics, fixes as quick fixes, rules as hover text.

It speaks the Language Server Protocol (https://microsoft.github.io/language-server-protocol)
through pygls, which comes with the extra ``server``.
"""
