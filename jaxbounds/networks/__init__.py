"""Analysis of any network: its curvature, one training step, its leaves by path."""
