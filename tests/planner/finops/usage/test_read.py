"""Usage files as their tools write them, and what is refused."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.finops.usage import load_usage
from planner.finops.usage.slurm import hosts
from tests.draws import draws

SACCT = (
    "JobID|JobName|Account|User|Cluster|State|Start|End|ElapsedRaw|AllocTRES|NodeList\n"
    "41|train-a|nlp|ann|c1|COMPLETED|2026-10-01T12:00:00|2026-10-02T12:00:00|86400|"
    "billing=64,cpu=64,gres/gpu:h100=8,gres/gpu=8,node=2|gpu[01-02]\n"
    "41.batch|batch|nlp||c1|COMPLETED|2026-10-01T12:00:00|2026-10-02T12:00:00|86400|cpu=32,gres/gpu=4,node=1|gpu01\n"
    "42|sweep|vision|bob|c1|CANCELLED by 1001|2026-10-03T00:00:00|2026-10-03T06:00:00|21600|gres/gpu:a100=4|gpu03\n"
    "43|cpu|vision|bob|c1|COMPLETED|2026-10-03T00:00:00|2026-10-03T06:00:00|21600|cpu=4|cpu1\n"
    "44|waits|vision|bob|c1|PENDING|Unknown|Unknown|0|gres/gpu=4|None assigned\n"
)
START = 1790812800  # 2026-10-01T00:00:00Z


def prometheus(*series: tuple[dict[str, str], list[float]], step: int = 3600) -> dict[str, Any]:
    result = [
        {"metric": labels, "values": [[START + step * n, str(value)] for n, value in enumerate(values)]}
        for labels, values in series
    ]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def gpu(metric: str = "DCGM_FI_DEV_GPU_UTIL", **labels: str) -> dict[str, str]:
    return {"__name__": metric, "Hostname": "gpu01", "UUID": "GPU-1", **labels}


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_slurm_jobs_are_spread_over_days_and_nodes(tmp_path: Path) -> None:
    (file,) = load_usage([write(tmp_path, "jobs.txt", SACCT)]).files
    assert file.kind == "Slurm sacct"
    rows = {(one.day.day, one.machine): one for one in file.allocated}
    assert {key: one.hours for key, one in rows.items()} == {
        (1, "gpu01"): 48, (1, "gpu02"): 48, (2, "gpu01"): 48, (2, "gpu02"): 48, (3, "gpu03"): 24
    }  # fmt: skip
    first, last = rows[1, "gpu01"], rows[3, "gpu03"]
    assert (first.team, first.runs, first.places, first.ended_badly) == (
        "nlp",
        ("train-a", "41"),
        ("c1", "nlp"),
        0,
    )
    assert last.ended_badly == 24
    assert file.days == {date(2026, 10, day) for day in (1, 2, 3)}


def test_elapsed_and_old_gres_are_read(tmp_path: Path) -> None:
    text = "JobIDRaw|Start|Elapsed|AllocGRES|NodeList|State\n7|2026-10-01T00:00:00|1-01:30:00|gpu:v100:2|n1|TIMEOUT\n"
    (file,) = load_usage([write(tmp_path, "old", text)]).files
    assert sum(one.hours for one in file.allocated) == pytest.approx(51)
    assert sum(one.ended_badly for one in file.allocated) == pytest.approx(51)


def test_columns_of_sacct_may_come_in_any_order(tmp_path: Path) -> None:
    names = "User|JobName|JobID|Start|ElapsedRaw|AllocTRES|NodeList|State|"
    text = f"{names}\nann|fit|9|2026-10-01T00:00:00|3600|gres/gpu=4|n1|COMPLETED|\n"
    (file,) = load_usage([write(tmp_path, "jobs", text)]).files
    assert [(one.hours, one.team, one.runs) for one in file.allocated] == [(4, "ann", ("fit", "9"))]


@given(
    st.lists(st.tuples(st.sampled_from(["gpu", "n-"]), st.integers(0, 99), st.integers(0, 40)), max_size=4)
)
@draws(40)
def test_host_lists_are_expanded(groups: list[tuple[str, int, int]]) -> None:
    text = ",".join(f"{head}[{low:03d}-{low + more:03d},{low + more + 2}]" for head, low, more in groups)
    expected = [
        f"{head}{number:03d}" if number <= low + more else f"{head}{number}"
        for head, low, more in groups
        for number in [*range(low, low + more + 1), low + more + 2]
    ]
    assert hosts(text, "x") == expected


def test_nested_host_lists() -> None:
    assert hosts("r[1-2]n[01-02],login", "x") == ["r1n01", "r1n02", "r2n01", "r2n02", "login"]


def test_dcgm_is_averaged_per_gpu(tmp_path: Path) -> None:
    data = prometheus(
        (gpu(exported_pod="p", exported_namespace="nlp"), [100, 50, 0, 0]),
        (gpu("DCGM_FI_PROF_GR_ENGINE_ACTIVE", exported_pod="p", exported_namespace="nlp"), [0.5, 0.5, 0, 0]),
        (
            gpu(UUID="GPU-2", namespace="gpu-operator", pod="nvidia-dcgm-exporter-x"),
            [80, 9223372036854775794],
        ),
    )
    (file,) = load_usage([write(tmp_path, "dcgm.json", data)]).files
    rows = {one.team: one for one in file.measured}
    assert (rows["nlp"].hours, rows["nlp"].busy) == (4, 1)  # the profiling metric counts, not both
    assert (rows[""].hours, rows[""].busy) == (
        1,
        pytest.approx(0.8),
    )  # the exporter's own pod is nobody's work
    assert any("1 samples hold no duty" in one for one in file.remarks)


def test_instances_of_one_gpu_count_once(tmp_path: Path) -> None:
    metric = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    data = prometheus((gpu(metric, GPU_I_ID="1"), [1, 1]), (gpu(metric, GPU_I_ID="2"), [0, 0]))
    (file,) = load_usage([write(tmp_path, "mig.json", data)]).files
    assert [(one.hours, one.busy) for one in file.measured] == [(2, 1)]


def test_samples_as_csv(tmp_path: Path) -> None:
    long = "timestamp,metric,Hostname,UUID,value\n" + "".join(
        f"2026-10-01T0{n}:00:00Z,DCGM_FI_DEV_GPU_UTIL,gpu01,GPU-1,50\n" for n in range(4)
    )
    wide = "Time,instance,gpu,DCGM_FI_DEV_GPU_UTIL\n" + "".join(
        f"{START + 3600 * n},gpu01:9400,0,50\n" for n in range(4)
    )
    for number, text in enumerate((long, wide)):
        (file,) = load_usage([write(tmp_path, f"{number}.csv", text)]).files
        assert [(one.machine, one.hours, one.busy) for one in file.measured] == [("gpu01", 4, 2)]


def test_requests_of_pods_are_allocations(tmp_path: Path) -> None:
    labels = {"__name__": "kube_pod_container_resource_requests", "resource": "nvidia_com_gpu", "node": "n1",
              "namespace": "nlp", "pod": "p"}  # fmt: skip
    (file,) = load_usage([write(tmp_path, "ksm.json", prometheus((labels, [8, 8, 0])))]).files
    assert [(one.machine, one.team, one.hours) for one in file.allocated] == [("n1", "nlp", 16)]


def test_opencost_csv(tmp_path: Path) -> None:
    text = (
        "Date,Namespace,ControllerKind,ControllerName,Pod,Container,Labels,GPUs,GPUCost,TotalCost\n"
        '2026-10-01,nlp,job,train,train-x,main,"{""run_id"":""r-1""}",2,10,12\n'
        "2026-10-01,__idle__,,,,,,4,10,12\n"
    )
    (file,) = load_usage([f"{write(tmp_path, 'oc.csv', text)}@prod-platform"]).files
    (row,) = file.allocated
    assert (row.hours, row.places, row.runs) == (48, ("prod-platform",), ("train-x", "train", "r-1"))
    assert "at most" in file.remarks[0]


def test_allocation_api(tmp_path: Path) -> None:
    own = {"cluster": "c1", "node": "ip-10", "namespace": "nlp", "pod": "p", "providerID": "i-0a"}
    entry = {
        "name": "n", "properties": own, "start": "2026-10-01T00:00:00Z", "end": "2026-10-02T12:00:00Z", "gpuHours": 36,
    }  # fmt: skip
    data = {"code": 200, "data": [{"n": entry, "__idle__": {**entry, "name": "__idle__"}}]}
    (file,) = load_usage([write(tmp_path, "api.json", data)]).files
    assert [(one.day.day, one.machine, one.hours) for one in file.allocated] == [
        (1, "i-0a", 24),
        (2, "i-0a", 12),
    ]


def test_pods_and_nodes(tmp_path: Path) -> None:
    def pod(name: str, phase: str, end: str = "") -> dict[str, Any]:
        state = {"terminated": {"finishedAt": end}} if end else {"running": {}}
        resources = {"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}
        status = {
            "phase": phase,
            "startTime": "2026-10-01T00:00:00Z",
            "containerStatuses": [{"state": state}],
        }
        return {"kind": "Pod", "metadata": {"name": name, "namespace": "nlp", "labels": {"run_id": "r-1"}},
                "spec": {"nodeName": "ip-10", "containers": [{"name": "a", "resources": resources}]},
                "status": status}  # fmt: skip

    node = {"kind": "Node", "metadata": {"name": "ip-10"}, "spec": {"providerID": "aws:///us-east-1a/i-0a"},
            "status": {"conditions": [{"lastHeartbeatTime": "2026-10-01T10:00:00Z"}]}}  # fmt: skip
    items = [pod("a", "Failed", "2026-10-01T05:00:00Z"), pod("b", "Running"), node]
    usage = load_usage([write(tmp_path, "k.json", {"kind": "List", "items": items})])
    rows = {one.runs[0]: one for one in usage.files[0].allocated}
    assert (rows["a"].hours, rows["a"].ended_badly, rows["b"].hours) == (10, 10, 20)
    assert usage.aliases == {"ip-10": ("aws:///us-east-1a/i-0a",)}


REFUSED = {
    "": "is empty",
    "JobID         JobName\n------- ----------\n": "parsable2",
    "JobID|Start\n": "sacct lacks NodeList, AllocTRES, ElapsedRaw",
    SACCT.replace("|86400|", "|-1|", 1): ":2: ElapsedRaw: '-1' is not a number",
    SACCT.replace("2026-10-01T12:00:00", "yesterday", 1): ":2: Start: 'yesterday' is not a timestamp",
    SACCT.replace("gpu[01-02]", "gpu[01-02", 1): "a bracket is not closed",
    SACCT.replace("gpu[01-02]", "gpu[1-999999999]", 1): "more than 100,000 hosts",
    "NAMESPACE NAME CPU(cores) MEMORY(bytes)\nx y 1m 2Mi\n": "kubectl top reports no GPUs",
    "# HELP DCGM_FI_DEV_GPU_UTIL x\n": "a single moment",
    "a,b\n1,2\n": "is of no tool that is known: it has a, b",
    "date,allocated_gpu_hours\n": "give it with --utilisation",
    "{broken": "is not JSON",
    '{"a": 1}': "is of no tool that is known: it has a",
    '{"status":"success","data":{"resultType":"vector","result":[]}}': "holds a vector, not a range",
    json.dumps(prometheus((gpu("DCGM_FI_DEV_FB_USED"), [1.0]))): "but DCGM_FI_DEV_FB_USED",
    json.dumps(prometheus(({"gpu": "0"}, [1.0]))): "no name (a function of PromQL drops it)",
    '{"items": [{"kind": "Pod"}]}': "an entry lacks 'metadata'",
    "Date,Namespace,GPUs,GPUCost\n2026-10-01,x,0,0\n": "without a single GPU",
    "Date,Namespace,GPUs,GPUCost\n2026-10-01,x,many,0\n": ":2: GPUs: 'many' is not a number",
}


@pytest.mark.parametrize(("text", "said"), REFUSED.items(), ids=range(len(REFUSED)))
def test_what_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = write(tmp_path, "usage", text)
    with pytest.raises(InputError) as error:
        load_usage([path])
    assert said in str(error.value) and str(path) in str(error.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_usage([tmp_path / "none.json"])


def test_ranges_within_ranges_of_hosts_are_refused_before_they_are_written_out() -> None:
    with pytest.raises(InputError, match="names more than 100,000 hosts"):
        hosts(f"n{'[0-9]' * 12}", "jobs:2")
    assert hosts("n[1-2]x[3-4]", "jobs:2") == ["n1x3", "n1x4", "n2x3", "n2x4"]


@pytest.mark.parametrize("text", ["n" + "[0]" * 40_000, "n" * 90_000 + "[0-9][0-9][0-9][0-9]"])
def test_names_of_hosts_that_no_network_has_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"jobs:2: .* a name of a host has over 255 characters"):
        hosts(text, "jobs:2")


@pytest.mark.parametrize("number", ["\N{SUPERSCRIPT TWO}", "9" * 5_000, "1-2-3", ""])
def test_numbers_of_hosts_are_plain_digits(number: str) -> None:
    with pytest.raises(InputError, match="is not a list of hosts"):
        hosts(f"n[{number}]", "jobs:2")


@pytest.mark.parametrize(
    ("elapsed", "said"),
    [("1e300", "no moment of a calendar"), ("9e9", "longer than ten years"), ("99999999999999", "no moment")],
)
def test_a_job_beyond_the_calendar_is_refused_by_its_line(elapsed: str, said: str, tmp_path: Path) -> None:
    text = f"JobID|Start|ElapsedRaw|AllocTRES|NodeList\n1|2026-10-01T00:00:00|{elapsed}|gres/gpu=8|n1\n"
    with pytest.raises(InputError, match=rf"jobs:2: .*{said}"):
        load_usage([write(tmp_path, "jobs", text)])


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_brackets_without_end_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"usage\.json: is not JSON"):
        load_usage([write(tmp_path, "usage.json", text)])
