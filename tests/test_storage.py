"""Results and checkpoints on object stores: one in memory, and S3 as a server that imitates it."""

import numpy as np
import pytest
import xarray as xr

from jaxbounds.cli import main
from jaxbounds.files import load_arrays, locate, save_arrays, whole
from jaxbounds.results import load, save

pytest.importorskip("upath", reason="the extra `storage` is not installed")

FIG2 = ["multihead.fig2", "--heads", "1", "4", "--trials", "2", "--steps", "40"]
FIG2 += ["--opening", "2", "--n", "10", "--test", "10"]


@pytest.fixture
def bucket(monkeypatch):
    """A bucket of a server that imitates S3."""
    pytest.importorskip("s3fs", reason="the extra `storage` is not installed")
    server = pytest.importorskip("moto.server", reason="moto is not installed")
    boto3 = pytest.importorskip("boto3", reason="moto is not installed")
    import fsspec

    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    settings = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    boto3.client("s3").create_bucket(Bucket="results")
    fsspec.filesystem("s3").clear_instance_cache()
    yield "s3://results"
    fsspec.filesystem("s3").clear_instance_cache()
    running.stop()


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
def test_a_run_its_resumption_and_its_shards_are_those_of_a_disk(store, tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    run = lambda out, *more: main(["run", *FIG2, "--out", str(out), *more])
    assert run(tmp_path / "here") == 0
    for index in (2, 1):
        assert run(f"{store}/parts", "--shard", f"{index}/2") == 0
    assert main(["merge", f"{store}/parts", "--out", f"{store}/merged"]) == 0
    assert run(f"{store}/merged", "--resume") == 0
    here, merged = load(tmp_path / "here" / "result.nc"), load(f"{store}/merged/result.nc")
    for name in here.variables:
        assert here[name].values.tobytes() == merged[name].values.tobytes(), name
    assert locate(f"{store}/merged/figure.png").read_bytes().startswith(b"\x89PNG")


def test_addresses_that_lead_nowhere_are_refused(capsys, bucket):
    assert main(["run", *FIG2, "--out", "nothing://there"]) == 2
    assert "addresses need" in capsys.readouterr().err
    assert main(["run", *FIG2, "--out", "s3://no-such-bucket/x"]) == 3
    assert "no-such-bucket" in capsys.readouterr().err
