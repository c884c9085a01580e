"""What a claim is, as data: statements, the sets of their instances, what is on record."""
