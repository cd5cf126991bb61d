"""What a training program means: samplers, loaders, ranks, seeds, epochs, programs of a tree."""
