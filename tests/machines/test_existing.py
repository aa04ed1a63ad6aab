"""A Dask cluster that Hearth did not start helps, in place of paired machines: real processes, Dask's own certificates and nannies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.__main__ import EXIT_TROUBLE
from app.__main__ import main as hearth
from app.base.paths import home
from app.engine.jobs.events import END, Finished, Stopped
from app.engine.jobs.request import PictureRequest
from app.machines.cluster.existing_process import keep_files
from app.machines.cluster.main_process import RESULTS_MOST
from app.machines.existing import find_cluster
from tests.support.lent import Main, open_main
from tests.support.light_painter import pace, read_made
from tests.support.plain_cluster import PlainCluster, plain_cluster
from tests.support.waiting import LOADING_S, until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainCluster]:
    with plain_cluster(tmp_path_factory.mktemp("plain") / "cluster") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def main(cluster: PlainCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Main]:
    folder = tmp_path_factory.mktemp("main")
    assert hearth(["machines", "use", *cluster.words, "--home", str(folder)]) == 0
    with open_main(folder) as main:
        pace(folder, step_s=0.5)
        until(lambda: count_ready(main) == 2, LOADING_S)
        yield main


def count_ready(main: Main) -> int:
    return sum(each.online and bool(each.models) and not each.paused for each in main.hub.list_machines())


@pytest.mark.slow
def test_its_workers_paint_a_batch_and_one_that_is_killed_costs_nothing(main: Main, cluster: PlainCluster) -> None:
    begun = main.keeper.home.root / "begun.png"
    Image.new("RGB", (64, 64), "red").save(begun)
    asked = PictureRequest("a ball", model="starter-painter", batch=12, seed=100, image=str(begun))
    job = main.keeper.submit(asked).id
    until(lambda: all(each.tasks for each in main.hub.list_machines()))
    cluster.list_workers()[0].kill()
    end = next(event for event in main.keeper.follow(job) if isinstance(event, END))
    assert isinstance(end, Finished) and len(end.files) == 12
    kept = main.keeper.shelf.list_of_job(job)
    assert len(kept) == 12 == len({each.path.read_bytes() for each in kept}), "each once"
    assert {each.plan.get("machine") for each in kept} & {"0", "1"}, "a worker is known by Dask's name for it"
    until(lambda: count_ready(main) == 2, LOADING_S)


@pytest.mark.slow
def test_a_worker_that_is_paused_gets_nothing(main: Main) -> None:
    resting, working = main.hub.list_machines()
    main.hub.let_rest(resting.id, True)
    job = main.keeper.submit(PictureRequest("a ball", model="starter-painter", batch=6, seed=200)).id
    end = next(event for event in main.keeper.follow(job) if isinstance(event, END))
    assert isinstance(end, Finished)
    assert {each.plan.get("machine") for each in main.keeper.shelf.list_of_job(job)} <= {working.name, None, ""}
    main.hub.let_rest(resting.id, False)
    assert [each.resting for each in main.hub.list_machines()] == [False, False]


@pytest.mark.slow
def test_stop_ends_what_its_workers_do(main: Main, cluster: PlainCluster) -> None:
    job = main.keeper.submit(PictureRequest("a ball", model="starter-painter", batch=8, seed=300)).id
    homes = [folder / "hearth" for folder in (cluster.folder / "dask-scratch-space").glob("*") if (folder / "hearth").is_dir()]
    until(lambda: any(word == "began" and seed >= 300 for each in homes for word, seed, _ in read_made(each)))
    main.keeper.stop(job)
    end = next(event for event in main.keeper.follow(job) if isinstance(event, END))
    assert isinstance(end, Stopped)
    until(lambda: any(word == "stopped" and seed >= 300 for each in homes for word, seed, _ in read_made(each)))


@pytest.mark.parametrize(
    "end",
    [
        None,
        {"event": {}, "files": None},
        {"event": {}, "files": {"../out.png": b""}},
        {"event": {}, "files": {"picture-0.png": "text"}},
        {"event": {}, "files": {f"picture-{number}.png": b"" for number in range(RESULTS_MOST + 1)}},
    ],
    ids=["nothing", "none", "elsewhere", "text", "many"],
)
def test_what_is_no_result_is_not_kept(end: object, tmp_path: Path) -> None:
    assert keep_files(tmp_path / "in" / "task", end) == (None, {})
    assert not any(each.is_file() for each in tmp_path.rglob("*"))


def test_a_stranger_and_a_plain_address_are_refused(cluster: PlainCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from app.machines.joining.certificates import identity_in, make_main

    own = make_main(tmp_path / "own")
    strange = ["--ca", str(cluster.folder / "ca.pem"), "--cert", str(own.certificate), "--key", str(own.key)]
    for words in (
        [cluster.address, *strange],
        [cluster.address.replace("tls", "tcp"), *cluster.words[1:]],
        [cluster.address],
        [cluster.address, *cluster.words[1:-1], str(tmp_path / "nothing.pem")],
        [cluster.address, *cluster.words[1:-1], str(cluster.folder / "ca.pem")],
    ):
        assert hearth(["machines", "use", *words, "--home", str(tmp_path)]) == EXIT_TROUBLE, words
    told = capsys.readouterr().err
    assert "cannot be used" in told and "no address of a Dask scheduler" in told and "name its scheduler" in told
    assert "nothing.pem" in told and "PEM format" in told
    assert find_cluster(home(tmp_path)) is None and identity_in(tmp_path / "machines" / "cluster").complete is False


def test_it_is_listed_and_used_no_more(cluster: PlainCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hearth(["machines", "use", *cluster.words, "--home", str(tmp_path)]) == 0
    found = find_cluster(home(tmp_path))
    assert found is not None and (found.folder / "own.key").stat().st_mode & 0o77 == 0
    assert hearth(["machines", "--home", str(tmp_path)]) == 0 and cluster.address in capsys.readouterr().out
    assert hearth(["machines", "remove", cluster.address, "--home", str(tmp_path)]) == 0
    assert find_cluster(home(tmp_path)) is None and not found.folder.exists()
