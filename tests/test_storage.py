"""Results and checkpoints on object stores: one in memory, and S3 as a server that imitates it."""

import threading
import urllib.request

import numpy as np
import pytest
import xarray as xr

from jaxbounds.cli import main, plot
from jaxbounds.experiments.results import load, save
from jaxbounds.experiments.sweeps import Checkpoints
from jaxbounds.experiments.sweeps.checkpoint import FORMAT
from jaxbounds.ground.files import Unreachable, load_arrays, locate, save_arrays, whole

pytest.importorskip("upath", reason="the extra `storage` is not installed")

FIG2 = ["multihead.fig2", "--heads", "4", "--trials", "2", "--steps", "40"]
FIG2 += ["--opening", "2", "--n", "10", "--test", "10"]


@pytest.fixture
def server(monkeypatch):
    """It imitates S3, and keeps what it holds while it is stopped."""
    pytest.importorskip("s3fs", reason="the extra `storage` is not installed")
    moto = pytest.importorskip("moto.server", reason="moto is not installed")
    import fsspec

    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, running._port = running.get_host_and_port()  # of every start
    settings = {
        "AWS_ENDPOINT_URL": f"http://{host}:{running._port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    fsspec.filesystem("s3").clear_instance_cache()
    yield running
    fsspec.filesystem("s3").clear_instance_cache()
    urllib.request.urlopen(f"{settings['AWS_ENDPOINT_URL']}/moto-api/reset", b"").close()
    running.stop()


@pytest.fixture
def bucket(server):
    """The address of an empty bucket there."""
    boto3 = pytest.importorskip("boto3", reason="moto is not installed")
    boto3.client("s3").create_bucket(Bucket="results")
    return "s3://results"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The folder of an undisturbed run; compiled programs are kept for those that follow."""
    folder = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(folder / "cache"))
        with patch.context() as undrawn:
            undrawn.setattr(plot, "_can_draw", lambda: False)
            assert _run(folder / "out") == 0
        yield folder / "out"


def _run(out, *more):
    return main(["run", *FIG2, "--out", str(out), *more])


@pytest.fixture(params=["memory", "s3"])
def store(request):
    """The address of an empty store."""
    if request.param == "s3":
        return request.getfixturevalue("bucket")
    import fsspec

    fsspec.filesystem("memory").store.clear()
    return "memory://results"


def test_files_are_whole_or_absent(store):
    path = locate(f"{store}/folder/a.npz")
    arrays = {"x": np.arange(5.0)}
    save_arrays(path, arrays, form="f", about="text")
    again, about = load_arrays(path, form="f")
    assert about == "text"
    np.testing.assert_array_equal(again["x"], arrays["x"])
    with pytest.raises(RuntimeError), whole(f"{store}/folder/b") as file:
        file.write(b"half")
        raise RuntimeError
    assert [found.name for found in path.parent.iterdir()] == ["a.npz"]
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="damaged"):
        load_arrays(path, form="f")
    dataset = xr.Dataset({"x": ("i", [1.0, 2.0])})
    save(dataset, f"{store}/folder/result.nc", seed=1)
    assert load(f"{store}/folder/result.nc").attrs == {"seed": 1}
    with pytest.raises(ValueError, match="run the experiment first"):
        load(f"{store}/folder/other.nc")


@pytest.mark.parametrize(
    "store", ["memory", pytest.param("s3", marks=pytest.mark.slow)], indirect=True
)
def test_a_run_its_resumption_and_its_shards_are_those_of_a_disk(store, alone):
    for index in (2, 1):
        assert _run(f"{store}/parts", "--shard", f"{index}/2") == 0
    assert main(["merge", f"{store}/parts", "--out", f"{store}/merged"]) == 0
    assert _run(f"{store}/merged", "--resume") == 0
    _same(alone, f"{store}/merged")
    assert locate(f"{store}/merged/figure.png").read_bytes().startswith(b"\x89PNG")


def _same(one, other):
    one, other = load(f"{one}/result.nc"), load(f"{other}/result.nc")
    for name in one.variables:
        assert one[name].values.tobytes() == other[name].values.tobytes(), name


@pytest.fixture
def at_fourth_write(monkeypatch):
    """Call something just before the fourth file of a checkpoint is written."""
    write, calls = Checkpoints._write, []

    def when(happens):
        def writing(self, name, arrays):
            calls.append(name)
            if len(calls) == 4:
                happens()
            write(self, name, arrays)

        monkeypatch.setattr(Checkpoints, "_write", writing)

    return when


def test_a_run_whose_bucket_is_gone_ends_in_a_sentence_and_goes_on(
    monkeypatch, capsys, alone, server, bucket, at_fourth_write
):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(plot, "_can_draw", lambda: False)
    at_fourth_write(server.stop)
    assert _run(f"{bucket}/fig2") == 3
    said = capsys.readouterr().err
    assert said.startswith(f"jaxbounds: {bucket}/fig2/checkpoints") and said.count("\n") == 1
    assert "onnect" in said
    # Not there is another thing than not reached: neither started again nor called damaged.
    with pytest.raises(Unreachable, match="onnect"):
        Checkpoints(f"{bucket}/fig2/checkpoints/panel0/opening", "").load()
    with pytest.raises(Unreachable, match="onnect"):
        load(f"{bucket}/fig2/result.nc")
    assert _run(f"{bucket}/fig2", "--resume") == 3
    server.start()
    kept = list(locate(bucket).rglob("*.npz"))
    assert len(kept) == 3
    for file in kept:
        load_arrays(file, form=FORMAT)
    assert _run(f"{bucket}/fig2", "--resume") == 0
    _same(alone, f"{bucket}/fig2")


def test_a_run_waits_for_a_bucket_that_comes_back(alone, server, bucket, at_fourth_write):
    back = threading.Timer(0.3, server.start)

    def stop():
        server.stop()
        back.start()

    at_fourth_write(stop)
    assert _run(f"{bucket}/fig2") == 0
    assert back.finished.is_set()
    _same(alone, f"{bucket}/fig2")


def test_what_is_cut_while_it_is_sent_is_not_there(tmp_path, monkeypatch, bucket):
    """Of a file that is sent in parts, the second is refused; what was there stays."""
    import s3fs

    path = locate(f"{bucket}/large")
    path.write_bytes(b"before")
    large = np.random.default_rng(0).bytes(15 * 2**20)
    calls, usual = [], s3fs.S3FileSystem._call_s3

    async def refusing(self, method, *args, **more):
        calls.append(method)
        if method == "upload_part" and calls.count(method) == 2:
            raise ConnectionResetError
        return await usual(self, method, *args, **more)

    monkeypatch.setattr(s3fs.core, "calculate_chunksize", lambda *args, **more: 5 * 2**20)
    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", refusing)
    with pytest.raises(Unreachable, match="ConnectionResetError"), whole(path) as file:
        file.write(large)
    assert calls.count("upload_part") >= 2 and path.read_bytes() == b"before"
    with whole(path) as file:
        file.write(large)
    assert path.read_bytes() == large


def test_addresses_that_lead_nowhere_are_refused(capsys, bucket):
    assert main(["run", *FIG2, "--out", "nothing://there"]) == 2
    assert "Addresses need" in capsys.readouterr().err
    assert main(["run", *FIG2, "--out", "s3://no-such-bucket/x"]) == 3
    assert "no-such-bucket" in capsys.readouterr().err
