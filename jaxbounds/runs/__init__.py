"""Run work and store results: the driver, engines, folders of results, shards and records.

The public functions are in `verify_api`, `falsify`, `violation`, `certify`, `audit`, `constants`
and `experiment`. These functions do from Python what the commands do.
"""
