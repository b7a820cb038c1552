"""Batch scripts: accepted by a real Slurm, clean for shellcheck, and what neither of them sees."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.export.files import write_files
from planner.export.registry import Options, export, export_phases
from planner.export.targets.slurm import time_limit, warning_s
from planner.export.view import Checkpoints, Launch, split
from tests.conftest import ROOT
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.slurm import Slurm, slurm, until
from tests.planner.export.validators import shellcheck

DIRECTIVES = {
    "job-name", "comment", "partition", "account", "qos", "constraint", "reservation", "nodes", "ntasks-per-node",
    "gpus-per-node", "mem", "time", "signal", "open-mode", "output", "array", "exclusive", "requeue",
}  # fmt: skip
TORCHRUN = (ROOT / "examples" / "running" / "torchrun").read_text(encoding="utf-8")  # a stand-in
# saves and exits with 0 when it is told to stop; only its second start reaches the end. Slurm signals every process of
# a step and launchers pass the signal on, so a worker may be told more than once in one start; it signals `sleep` too,
# perhaps first, so the end of `sleep` must not be the end of the worker
WORK = r"""#!/bin/bash
trap 'echo "start $(wc -l <starts)" >>saves; exit 0' TERM
echo "$1" >>starts
if [ "$(wc -l <starts)" -gt 1 ]; then echo done >result; exit 0; fi
while :; do sleep 300 & wait; done
"""


def script(name: str, **values: str) -> str:
    return export(LAUNCHES[name], "slurm", Options(values=values))[0].text


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with slurm(tmp_path_factory.mktemp("slurm") / "cloud", real=False) as server:
        yield server


def test_shellcheck_finds_nothing() -> None:
    inside = [script(name, container="pyxis") for name in LAUNCHES if name != "azure"]
    assert shellcheck(*map(script, LAUNCHES), *inside) == ""


@pytest.mark.parametrize("name", LAUNCHES)
def test_every_directive_is_known_and_stands_before_the_first_command(name: str) -> None:
    lines = script(name, partition="spot,on-demand", account="ml").splitlines()
    first = next(at for at, line in enumerate(lines) if line and not line.startswith("#"))
    at = [number for number, line in enumerate(lines) if line.startswith("#SBATCH")]
    assert lines[0] == "#!/bin/bash" and max(at) < first
    assert {re.match(r"#SBATCH --([a-z-]+)(=|$)", lines[number])[1] for number in at} <= DIRECTIVES  # type: ignore[index]


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_real_controller_takes_the_script(cloud: Slurm, tmp_path: Path, name: str) -> None:
    path = tmp_path / "job.sbatch"
    path.write_text(script(name))
    tested = cloud.run("sbatch", "--test-only", str(path))
    assert tested.returncode == 0 and "to start at" in tested.stderr, tested.stderr


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("--nodes=129", "Requested node configuration is not available"),
        ("--gpus-per-node=h100:16", "Requested node configuration is not available"),
        ("--partition=p6", "invalid partition specified"),
        ("--time=99-00:00:00", "Requested time limit is invalid"),
        ("--signal=B:USR9@90", "Invalid --signal specification"),
    ],
)
def test_the_controller_refuses_what_does_not_fit(
    cloud: Slurm, tmp_path: Path, wrong: str, said: str
) -> None:
    path = tmp_path / "job.sbatch"
    path.write_text(script("one"))
    tested = cloud.run("sbatch", "--test-only", wrong, str(path))
    assert tested.returncode != 0 and said in tested.stderr


def test_a_preempted_job_comes_back_and_ends_when_the_work_is_done(tmp_path: Path) -> None:
    base = LAUNCHES["one"]
    run = replace(base.run, command="./work.sh 'a b'", setup='true\necho "$PWD" >setup', secrets=())
    launch = replace(base, nodes=1, pools=(replace(base.first, nodes=1),), run=run)
    with slurm(tmp_path / "real", real=True) as server:
        folder = server.folder
        files = {"torchrun": TORCHRUN, "work.sh": WORK, "first.sh": "#!/bin/bash\ntrue\n"}
        files["job.sbatch"] = export(launch, "slurm", Options())[0].text
        for name, text in files.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        assert server.run("sbatch", "job.sbatch", PATH=f"{folder}:{os.environ['PATH']}").returncode == 0
        assert until(300, (folder / "starts").exists)
        assert server.run("sbatch", "--partition=high", "--exclusive", "first.sh").returncode == 0
        assert until(300, (folder / "saves").exists)
        log = folder / "llama-3-8b-pretrain-1.log"

        def comes_back() -> bool:
            # Slurm lets a requeued job wait about two minutes, and counts them anew where its first step ends late
            if "PENDING" in server.run("squeue", "-h", "-j", "1", "-o", "%T").stdout:
                server.run("scontrol", "update", "JobId=1", "StartTime=now")
            return (folder / "result").exists()

        assert until(300, comes_back), log.read_text() + server.run("scontrol", "show", "job").stdout
        assert until(
            300, lambda: "JobState=COMPLETED" in server.run("scontrol", "show", "job", "1").stdout
        ), log.read_text()
        shown = server.run("scontrol", "show", "job", "1").stdout
    assert "Restarts=1" in shown and "planner_run_id=run-0123456789ab" in shown
    assert (folder / "starts").read_text() == "a b\na b\n"
    assert set((folder / "saves").read_text().splitlines()) == {"start 1"}
    assert (folder / "setup").read_text().strip() == str(folder)
    assert not (folder / "planner-1").exists()


# the first phase fails at its first start, the third does not end by itself
PHASE = r"""#!/bin/bash
echo "$1" >>"$2/starts"
while [ "$1" = 3 ]; do sleep 1; done
[ "$1 $(wc -l <"$2/starts")" != "1 1" ]
"""


def test_phases_are_submitted_at_once_and_start_one_after_the_other(tmp_path: Path) -> None:
    """A phase that fails and comes back is waited for; one that fails for good ends those behind it."""
    base = LAUNCHES["one"]
    with slurm(tmp_path / "real", real=True) as server:
        folder = server.folder
        for name, text in {"torchrun": TORCHRUN, "work.sh": PHASE}.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)

        def launch(words: str) -> Launch:
            run = replace(base.run, command=f"{folder}/{words} {folder}", setup="", secrets=())
            return replace(base, nodes=1, pools=(replace(base.first, nodes=1),), run=run)

        def submit(name: str, *each: str) -> None:
            files = export_phases(base, [launch(words) for words in each], "slurm", Options())
            assert files[0].path == "submit.sh" and shellcheck(files[0].text) == ""
            write_files(files, folder / name)
            done = server.run("bash", f"{name}/submit.sh", PATH=f"{folder}:{os.environ['PATH']}")
            assert done.returncode == 0 and "phase-2/job.sbatch: job " in done.stdout, done.stderr

        def ended(number: int, state: str) -> bool:
            server.run("scontrol", "update", "JobId=1", "StartTime=now")  # else it waits about two minutes
            return f"JobState={state}" in server.run("scontrol", "show", "job", str(number)).stdout

        submit("good", "work.sh 1", "work.sh 2")
        assert "Dependency" in server.run("squeue", "-h", "-j", "2", "-o", "%r").stdout
        assert until(300, lambda: ended(2, "COMPLETED")), server.run("scontrol", "show", "job").stdout
        assert (folder / "starts").read_text() == "1\n1\n2\n"
        submit("bad", "work.sh 3", "work.sh 4")
        server.run("scancel", "3")
        assert until(300, lambda: ended(4, "CANCELLED")), server.run("scontrol", "show", "job").stdout
        files = export_phases(base, [launch("work.sh 3"), launch("work.sh 4")], "slurm", Options())
        write_files(files, folder / "refused")
        (folder / "refused/phase-2/job.sbatch").write_text("#!/bin/bash\n#SBATCH --partition=none\n")
        done = server.run("bash", "refused/submit.sh", PATH=f"{folder}:{os.environ['PATH']}")
        assert done.returncode == 1 and "partition" in done.stderr
        assert until(300, lambda: ended(5, "CANCELLED")), server.run("scontrol", "show", "job").stdout
    assert "4" not in (folder / "starts").read_text()


def test_the_warning_leaves_time_for_two_checkpoints_though_slurm_may_be_early() -> None:
    for write_s in (0.0, 28.1, 600.0, 1e6):
        launch = replace(LAUNCHES["one"], checkpoints=Checkpoints(1800.0, 100.0, write_s, 120.0))
        assert min(65_535, write_s * 2 + 60) <= warning_s(launch) <= 65_535


@pytest.mark.parametrize("name", LAUNCHES)
def test_the_warning_reaches_the_shell_alone_and_torchrun_gets_term(name: str) -> None:
    """USR1 kills torchrun and tells its workers nothing: Slurm sends it to the batch shell, which passes on TERM."""
    text = script(name)
    assert re.findall(r"#SBATCH --signal=(\w+:\w+)@", text) in (["B:USR1"], [])
    sent = re.findall(r"(?:scancel --signal=|kill -s |kill -)([A-Z]\w*)", text)
    assert sent and set(sent) == {"TERM"}


def test_a_run_has_the_time_that_nine_of_ten_need() -> None:
    assert time_limit(LAUNCHES["one"], 1) == "7-12:00:00"  # 180 h
    without = replace(LAUNCHES["one"], limits=replace(LAUNCHES["one"].limits, hours_p90=None))
    assert time_limit(without, 1) == "5-17:30:00"  # 110 h x 1.25
    # 64 runs on 5 machines: 13 rounds in 110 h
    assert time_limit(LAUNCHES["workers"], 64) == "0-10:45:00"


def test_runs_are_split_by_throughput_to_the_last_one() -> None:
    assert split(64, [0.5, 0.3, 0.2]) == [32, 19, 13]
    assert split(3, [1, 1]) in ([2, 1], [1, 2])


def test_a_fleet_on_several_kinds_gets_a_script_each_and_every_run_once() -> None:
    base = LAUNCHES["workers"]
    other = replace(base.pools[1], instance_type="g2-standard-4", provider="gcp", share=0.4)
    launch: Launch = replace(base, pools=(replace(base.pools[0], share=0.6), other))
    files = export(launch, "slurm", Options())
    assert [file.path for file in files] == ["job-1.sbatch", "job-2.sbatch"]
    arrays = [re.search(r"--array=(\d+)-(\d+)%(\d+)", file.text).groups() for file in files]  # type: ignore[union-attr]
    assert arrays == [("0", "37", "3"), ("38", "63", "2")]


@pytest.mark.parametrize(
    ("key", "value"),
    [("partition", "a b"), ("time", "2h"), ("gpu-type", "$(x)"), ("account", "\nx"), ("container", "docker")],
)
def test_an_option_that_slurm_would_refuse_is_refused_by_name(key: str, value: str) -> None:
    with pytest.raises(InputError, match=key):
        script("one", **{key: value})


def test_a_container_without_an_image_is_refused() -> None:
    with pytest.raises(InputError, match=r"run\.image"):
        script("azure", container="pyxis")
