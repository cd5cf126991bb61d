"""What any program means: points-to sets, the class hierarchy, reaching definitions, origins."""
