"""The wheel and the source distribution install and run outside the checkout."""

import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def _run(*command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_a_built_package_runs_elsewhere(kind, tmp_path):
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    if kind == "wheel":
        _run(*pip, "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT), folder=tmp_path)
        (package,) = tmp_path.glob("*.whl")
        names = zipfile.ZipFile(package).namelist()
    else:
        source = f"import hatchling.build as b; b.build_sdist({str(tmp_path)!r})"
        _run(sys.executable, "-c", source, folder=ROOT)
        (package,) = tmp_path.glob("*.tar.gz")
        with tarfile.open(package) as archive:
            names = archive.getnames()
    for shipped in ("report/page.css", "guide/verdicts.md", "template/README.md"):
        assert any(name.endswith(f"jaxbounds/{shipped}") for name in names)
    assert not any("/tests/" in name for name in names if kind == "wheel")
    # The dependencies of this environment, the package from the archive alone.
    venv.create(tmp_path / "venv", system_site_packages=True, with_pip=False)
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    own = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    (site / "dependencies.pth").write_text(f"{own}\n")
    target = ("install", "-q", "--no-deps", "--no-build-isolation", "--target", str(site))
    _run(*pip, *target, str(package), folder=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    where = "import jaxbounds, sys; print(jaxbounds.__file__)"
    assert str(site) in _run(str(python), "-c", where, folder=tmp_path)
    program = "from jaxbounds.cli import main; raise SystemExit(main())"
    shown = _run(str(python), "-c", program, "list", "multihead.prop1", folder=tmp_path)
    assert "multihead.prop1.2" in shown
