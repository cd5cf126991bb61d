"""For working on sampler-lint itself, in a checkout: generated documentation and the demo."""
