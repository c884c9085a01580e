"""From a piece of work to results anywhere: the driver, engines, the store, shards, records.

The doors that the face opens are `verify`, `certify`, `audit`, `constants` and `experiment`; they
do from Python what the commands do.
"""
