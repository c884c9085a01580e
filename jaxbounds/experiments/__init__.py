"""Define experiments, run sweeps, store labelled results with provenance, and draw figures."""
