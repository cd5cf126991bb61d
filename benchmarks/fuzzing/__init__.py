"""The parts of ``benchmarks/fuzz.py``: programs, their mutants, and what must hold of these."""
