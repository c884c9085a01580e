"""What the rules of ball arithmetic are judged by: fractions and mpmath, never FLINT's functions.

Points are `Fraction`s (floats, sums and products of them are exact), or one of the float infinities
and NaN; a true value is such a point, an `mpmath.mpf` of 400 bits or more, or None where the
function is undefined.
"""
