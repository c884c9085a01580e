"""Wei, Chen and Ma, "Statistically Meaningful Approximation" (2021).

Boolean circuits compiled to feedforward networks, Turing machines compiled to Transformers, and
their all-layer margins.
"""
