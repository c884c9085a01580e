"""Every test runs with strict promotion rules, on several fake CPU devices, compiled cheaply.

The variable `JAXBOUNDS_TEST_DEVICES` says on how many devices, 4 unless it is set. A test that
needs more is marked `devices(N)`, and skipped where there are fewer.

Most of a test's time goes into compiling programs that run for milliseconds. Types are checked at
run time where shapes are annotated; everywhere, which takes twice the time, once a week by
`--jaxtyping-packages=jaxbounds,...`.
"""

import contextlib
import ctypes
import gc
import os
import shutil
import sys
import time

import jax
import jaxtyping
import psutil
import pytest

from jaxbounds.ground.jax_internals import enable_x64, forget_compilation_cache

# Read when the first backend starts, which refuses flags that it does not know.
CHEAP = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
CHEAP += " --xla_cpu_parallel_codegen_split_count=1 --xla_cpu_prefer_vector_width=128"
if jax.__version_info__ < (0, 11):
    CHEAP += " --xla_cpu_use_fusion_emitters=false"
os.environ["XLA_FLAGS"] = f"{CHEAP} {os.environ.get('XLA_FLAGS', '')}"
DEVICES = int(os.environ.get("JAXBOUNDS_TEST_DEVICES", "4"))
jax.config.update("jax_num_cpu_devices", DEVICES)
jax.config.update("jax_cpu_enable_async_dispatch", False)  # as the commands do, for their reason
jax.config.update("jax_traceback_filtering", "off")  # as the commands do, for their reason
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


SHAPED = (
    "bounds",
    "multihead",
    "networks.curvature",
    "networks.training",
    "numerics.arrays",
    "numerics.ascent",
    "numerics.norms",
    "qstr",
    "seqlength",
    "smapprox",
)
MUCH, MORE = 2**30, 2**27
"""Bytes that a worker may hold; and those that come together before it gives back again."""
KEPT = 7 * 24 * 3600.0
"""Seconds that a compiled program is kept for later runs of the tests; more takes more disk."""
WORTH = 0.03
"""Seconds of compiling from which a program is kept; a larger value keeps fewer programs."""
LIBC = ctypes.CDLL(None) if os.name == "posix" else None
CHECKER = "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"


def pytest_configure(config):
    """Before anything of the library is imported.

    Imports and compiled programs make millions of objects that stay: look less often for others.
    """
    gc.set_threshold(20_000, 50, 1000)
    config.addinivalue_line("markers", "devices(count): needs so many devices")
    config.addinivalue_line("markers", "default_cases(*ids): all other cases are slow")
    config.addinivalue_line("markers", "slow_cases(*ids): these cases are slow")
    if not config.getoption("jaxtyping_packages"):
        jaxtyping.install_import_hook([f"jaxbounds.{name}" for name in SHAPED], CHECKER)
    if (cache := getattr(config, "cache", None)) is not None:
        _keep_programs(cache.mkdir("programs"))


def _keep_programs(folder):
    """Let the next run of the tests load what this run compiles."""
    for file in folder.iterdir():
        with contextlib.suppress(OSError):  # another worker may remove it at this moment
            if time.time() - file.stat().st_mtime > KEPT:
                file.unlink()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A file's tests are of one worker, which compiles for all of them; statements are shared out.

    Neighbours among the statements have programs in common.
    """
    from xdist.scheduler.loadscope import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file, _, test = nodeid.partition("::")
            return file + ".".join(test.split(".")[:2]) if "test_papers" in file else file

    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)  # before `-m "not slow"` chooses
def pytest_collection_modifyitems(config, items):
    """Mark as slow the cases that the markers of their test leave to the weekly run.

    Raises:
        UsageError: if a marker names a case that its test does not have.
    """
    unknown = {}
    for item in items:
        for mark in item.iter_markers():
            if mark.name in ("default_cases", "slow_cases"):
                test = item.nodeid.partition("[")[0], mark.name
                unknown.setdefault(test, set(mark.args)).discard(item.callspec.id)
                if (item.callspec.id in mark.args) == (mark.name == "slow_cases"):
                    item.add_marker(pytest.mark.slow)
    wrong = {test: ids for test, ids in unknown.items() if ids}
    if wrong and not any("::" in argument for argument in config.args):
        raise pytest.UsageError(f"{wrong=} are no cases. Try the ids of `pytest --collect-only`")


def pytest_collection_finish():
    """Exempt all imported objects from garbage collection."""
    gc.freeze()


def pytest_runtest_setup(item):
    """Tests that need more devices than there are say nothing."""
    needed = max((mark.args[0] for mark in item.iter_markers("devices")), default=1)
    if needed > 1 and needed > len(jax.devices()):
        pytest.skip(f"{needed} devices are needed, and there are {len(jax.devices())}")


@contextlib.contextmanager
def _settings_restored(*names):
    """JAX's settings of these names are as they were before."""
    before = {f"jax_{name}": jax.config.values[f"jax_{name}"] for name in names}
    yield
    if any(jax.config.values[name] != value for name, value in before.items()):
        for name, value in before.items():
            jax.config.update(name, value)
        forget_compilation_cache()


@pytest.fixture(scope="module", autouse=True)
def settings_are_restored():
    """A command keeps what is compiled after it, which would be written for every other module."""
    with _settings_restored("compilation_cache_dir", "persistent_cache_min_compile_time_secs"):
        yield


@pytest.fixture(autouse=True)
def modules_of_a_test_leave_with_it(tmp_path_factory):
    """A module of a test's folder would count as the next test's own, with a text nobody knows."""
    before = set(sys.modules)
    yield
    room = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(room):
            del sys.modules[name]


class _Held:
    """Bytes that this worker may hold before it gives some back."""

    most = MUCH


@pytest.fixture(autouse=True)
def programs_are_let_go():
    """What is compiled is of little use to other modules, and would fill the memory of a long run.

    What is freed goes back to the system: glibc keeps it unless it is asked. All this takes as long
    as a small module does, and is done when much has come together.
    """
    yield
    resident = psutil.Process().memory_info
    if resident().rss > _Held.most:
        jax.clear_caches()
        gc.collect()
        if hasattr(LIBC, "malloc_trim"):
            LIBC.malloc_trim(0)
        _Held.most = max(MUCH, resident().rss + MORE)


@pytest.fixture(scope="module")
def kept_programs(tmp_path_factory):
    """Compiled programs on disk: for modules that run them on several devices, or again."""
    names = ("compilation_cache_dir", "persistent_cache_min_compile_time_secs")
    with _settings_restored(*names):
        jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("programs")))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        forget_compilation_cache()
        yield


@pytest.fixture
def x64():
    """Float64 for the length of one test, as the library scopes it."""
    with enable_x64(True):
        yield


@pytest.fixture
def key():
    """A typed PRNG key; split it, never reuse it."""
    return jax.random.key(0)


@pytest.fixture
def unannotated():
    """Shape annotations off: bad input must be refused by the library, as for its users."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="module")
def visit():
    """Opens a file in a real browser: `with visit(path, "#anchor", width=360) as tab`.

    Nothing may be asked of any network, and no error may reach the console.
    """
    from playwright.sync_api import sync_playwright  # here, as few tests need it

    with sync_playwright() as playwright:
        found = (shutil.which(name) for name in (*BROWSERS, playwright.chromium.executable_path))
        program = next(filter(None, found), None)
        if program is None:
            pytest.skip("no Chromium or Chrome on this machine")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])

        @contextlib.contextmanager
        def open_tab(path, fragment="", *, width=1300, height=900, scheme="light"):
            size = {"width": width, "height": height}
            context = browser.new_context(viewport=size, color_scheme=scheme)
            tab, wrong, asked = context.new_page(), [], []
            tab.on("console", lambda message: wrong.append(message.text))
            tab.on("pageerror", lambda error: wrong.append(str(error)))
            tab.on("request", lambda request: asked.append(request.url.split("#")[0]))
            tab.goto(path.as_uri() + fragment)
            yield tab
            assert wrong == [] and set(asked) == {path.as_uri()}
            context.close()

        yield open_tab
        browser.close()
