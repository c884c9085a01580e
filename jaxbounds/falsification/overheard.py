"""Report the calls of chosen functions, and their results, without slowing other calls.

Python's hook for profilers would report every call, and a trace would take twice the time.
"""

import contextlib
import functools
import inspect
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

Function = types.FunctionType
SIGNATURE = "__signature__"
"""The attribute in which `inspect.signature` looks first."""


class Listener(NamedTuple):
    """The two functions to which the calls of one thread are reported.

    Attributes:
        called: receives a called function at the start of each call.
        returned: receives a called function and its result at the end of each call.
    """

    called: Callable[[Function], object]
    returned: Callable[[Function, Any], object]


class _Held(NamedTuple):
    code: types.CodeType
    signature: Any
    listeners: list[tuple[int, Listener]]


_LOCK = threading.RLock()
_HELD: dict[Function, _Held] = {}
"""The functions whose calls are reported at the moment."""


def _pass(*given: Any, **named: Any) -> Any:
    relay: Any = "relay"  # a constant of the code, which `_passing` replaces
    return relay(*given, **named)


def _passing(function: Function, relay: Callable) -> types.CodeType:
    """Return a code object for `function` that passes all arguments of a call to `relay`."""
    own, code = function.__code__, _pass.__code__
    return code.replace(
        co_consts=tuple(relay if one == "relay" else one for one in code.co_consts),
        co_freevars=own.co_freevars, co_filename=own.co_filename, co_name=own.co_name,
        co_firstlineno=own.co_firstlineno,
    )  # fmt: skip


def _relay(function: Function, listeners: list[tuple[int, Listener]]) -> Callable:
    """Return a function that runs the code of `function`, and tells the listeners of each call."""
    plain = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    plain.__kwdefaults__ = function.__kwdefaults__

    def relay(*given: Any, **named: Any) -> Any:
        own = [one for thread, one in listeners if thread == threading.get_ident()]
        for one in own:
            one.called(function)
        value = plain(*given, **named)
        for one in own:
            one.returned(function, value)
        return value

    return relay


def _begin(function: Function, listener: tuple[int, Listener]) -> None:
    with _LOCK:
        if function not in _HELD:
            held = _HELD[function] = _Held(function.__code__, vars(function).get(SIGNATURE), [])
            vars(function)[SIGNATURE] = inspect.signature(function)  # not the signature of `_pass`
            function.__code__ = _passing(function, _relay(function, held.listeners))
        _HELD[function].listeners.append(listener)


def _end(function: Function, listener: tuple[int, Listener]) -> None:
    with _LOCK:
        code, stored, listeners = _HELD[function]
        listeners.remove(listener)
        if not listeners:
            function.__code__ = code
            vars(function)[SIGNATURE] = stored
            if stored is None:
                del vars(function)[SIGNATURE]
            del _HELD[function]


@contextlib.contextmanager
def overheard(functions: Iterable[Function], listener: Listener, /) -> Iterator[None]:
    """Report each call of the functions in this thread to `listener`, in a `with` block.

    The block replaces each function's code, so calls through older references are reported too.
    """
    with contextlib.ExitStack() as stack:
        for function in functions:
            _begin(function, mine := (threading.get_ident(), listener))
            stack.callback(functools.partial(_end, function, mine))
        yield
