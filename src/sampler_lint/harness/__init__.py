"""The proof: run a program on N gloo ranks, record what each of them reads, judge the record.

Code under test never runs in this process, and torch is never imported here.
"""
