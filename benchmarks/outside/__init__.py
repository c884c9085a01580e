"""Two hundred claims of known truth, half of them false, and the library's word on each.

    python -m benchmarks.outside [NAME ...] [--kind K] [--seed S] [--jobs N]
    python -m benchmarks.outside --check

The kinds A to G: sets and zero, one function, integers, identities, search, overflow, true claims.
The author of the claims does not change the library. `--check` asks no verdict: each claim's
own check confirms the claim's truth by exact integers, mpmath, brute force or plain float64.
"""
