"""The claims by name, and the library's word on each: here, or in other processes."""

import multiprocessing
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple

from benchmarks.outside.a_sets_and_zero import CLAIMS as A
from benchmarks.outside.b_same_function import CLAIMS as B
from benchmarks.outside.c_integers import CLAIMS as C
from benchmarks.outside.claims import Claim
from benchmarks.outside.d_identities import CLAIMS as D
from benchmarks.outside.e_search import CLAIMS as E
from benchmarks.outside.f_overflow import CLAIMS as F
from benchmarks.outside.g_true_claims import CLAIMS as G

COUNT = 200
"""The number of claims; half of them are false."""
LISTED = (*A, *B, *C, *D, *E, *F, *G)
CLAIMS: dict[str, Claim] = {claim.name: claim for claim in LISTED}


class Row(NamedTuple):
    """One claim's result: its name, the judgement, the library's word, the seconds."""

    name: str
    judgement: str
    word: str
    said: str
    seconds: float


def judged(name: str, seed: int) -> Row:
    """Ask the library for its word on one claim; an exception is WRONG."""
    claim, started = CLAIMS[name], time.perf_counter()
    word = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = claim.ask(seed)
        judgement, word = claim.judged(found), found.word
        said = f"{found.word} {found.evidence} {found.ratio:.9g} {found.reason}"
    except Exception as problem:
        judgement, said = "WRONG", f"{type(problem).__name__}: {problem}"
    return Row(name, judgement, word, " ".join(said.split())[:170], time.perf_counter() - started)


def rows(names: list[str], seed: int, jobs: int) -> Iterator[Row]:
    """The results as they come, from this process or from `jobs` processes."""
    if jobs == 1:
        yield from (judged(name, seed) for name in names)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(judged, name, seed) for name in names]):
            yield done.result()
