"""Data types of a claim: statements, the sets of their instances, the records about them."""
