"""Run experiments and verifications, and store their results in folders.

The public functions are in `verify_api`, `falsify`, `violation`, `certify`, `audit`, `constants`
and `experiment`. These functions do from Python what the commands do.
"""
