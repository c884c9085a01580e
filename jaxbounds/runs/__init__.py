"""Run experiments and verifications, and store their results in folders.

The public functions are in `verify_api`, `falsify`, `violation`, `certify`, `audit`, `constants`
and `experiment`. Each public function does the work of a command of `jaxbounds`, called from
Python.
"""
