"""A Prometheus server as a source: a real one, and one that misbehaves in every way that was thought of."""

from __future__ import annotations

import http.server
import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.errors import InputError
from planner.tracking.metrics import default_queries, queries, read_metrics, run_selector
from planner.tracking.model import MEASURES
from planner.tracking.prometheus import MOST_POINTS, Prometheus
from planner.tracking.row_order import intervals_of
from tests.conftest import Run
from tests.planner.tracking.runs import spot_plan

Answer = tuple[int, bytes]
START = 1_772_438_400.0  # 2026-03-02T08:00Z


def whole(values: list[list[Any]], series: int = 1) -> bytes:
    result = [{"metric": {"n": str(number)}, "values": values} for number in range(series)]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


class Fake:
    """A server on loopback that answers as it is told, and remembers what it was asked."""

    def __init__(
        self, answer: Callable[[str], Answer], wait: float = 0.0, headers: dict[str, str] | None = None
    ) -> None:
        seen = self.seen = []  # type: list[tuple[str, str | None]]
        ended = self._ended = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                seen.append((self.path, self.headers.get("Authorization")))
                status, body = answer(self.path)
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    for at in range(0, len(body), 1 << 16):
                        self.wfile.write(body[at : at + (1 << 16)])
                        if wait and ended.wait(wait):
                            return
                except OSError:
                    return

            def log_message(self, *_: object) -> None:
                return

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Fake]]:
    made: list[Fake] = []

    def start(*args: Any, **more: Any) -> Fake:
        made.append(Fake(*args, **more))
        return made[-1]

    yield start
    for one in made:
        one.close()


def ask(fake: Fake, **more: Any) -> dict[float, float]:
    return Prometheus(fake.url, **more).query_range("step", "max(x)", START, START + 3600.0)


def test_values_are_texts_and_odd_ones_are_left_out(serve: Callable[..., Fake]) -> None:
    odd = [[1, "5"], [2, "NaN"], [3, "+Inf"], [4, "9223372036854775794"], [5, "7.5"]]
    assert ask(serve(lambda _: (200, whole(odd)))) == {1.0: 5.0, 5.0: 7.5}


def test_an_empty_result_is_no_fault(serve: Callable[..., Fake]) -> None:
    assert ask(serve(lambda _: (200, whole([], 0)))) == {}


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (
            400,
            b'{"status":"error","errorType":"bad_data","error":"parse error at char 3"}',
            "parse error at char 3",
        ),
        (200, b'{"status":"error","error":"too many samples"}', "too many samples"),
        (401, b"who are you", "access refused (401): put a bearer token into PLANNER_PROMETHEUS_TOKEN"),
        (403, b"", "access refused (403)"),
        (500, b"oh no", "status 500 and no JSON"),
        (503, b'{"status":"success","data":{"result":[]}}', "status 503 and no result"),
        (200, b"<html>welcome</html>", "no JSON: is it a Prometheus server?"),
        (200, b"[" * 100_000, "no JSON"),
        (200, b'{"status":"success","data":[]}', "no result"),
        (
            200,
            b'{"status":"success","data":{"result":[{"values":[["a","b"]]}]}}',
            "not a pair of moment and figure",
        ),
        (200, b'{"status":"success","data":{"result":[{"value":[1,"2"]}]}}', "a series without values"),
        (200, whole([[1, "2"]], 3), "gives 3 series: aggregate it"),
    ],
)
def test_a_server_that_answers_wrongly(
    serve: Callable[..., Fake], status: int, body: bytes, said: str
) -> None:
    with pytest.raises(InputError) as error:
        ask(serve(lambda _: (status, body)))
    assert said in str(error.value)


def test_a_huge_answer_is_cut_off(serve: Callable[..., Fake]) -> None:
    with pytest.raises(InputError, match="more than 1 MiB in one answer"):
        ask(serve(lambda _: (200, b" " * (3 << 20))), most_bytes=1 << 20)


def test_an_answer_that_trickles_meets_the_total_time(serve: Callable[..., Fake]) -> None:
    begin = time.monotonic()
    with pytest.raises(InputError, match=r"no whole answer within 0.4 s"):
        ask(serve(lambda _: (200, b" " * (64 << 20)), wait=0.1), timeout_s=0.4)
    assert time.monotonic() - begin < 60.0  # the whole answer takes 102 s


def test_no_server_and_one_that_sends_elsewhere(serve: Callable[..., Fake]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(InputError, match="is it running there"):
        Prometheus(f"http://127.0.0.1:{port}").query_range("step", "x", START, START + 60.0)
    elsewhere = serve(lambda _: (302, b""), headers={"Location": "http://198.51.100.1/"})
    with pytest.raises(InputError, match="sends elsewhere"):
        ask(elsewhere)


def test_a_token_is_sent_and_shown_nowhere(
    serve: Callable[..., Fake],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fake = serve(lambda _: (401, b""))
    monkeypatch.setenv("PLANNER_PROMETHEUS_TOKEN", "s3cret-token")
    caplog.set_level("DEBUG")
    with pytest.raises(InputError) as error:
        ask(fake)
    assert fake.seen[0][1] == "Bearer s3cret-token"
    assert "s3cret" not in str(error.value) + caplog.text + fake.seen[0][0]
    with pytest.raises(InputError, match="would travel in the clear"):
        Prometheus("http://metrics.example.com:9090")
    monkeypatch.setenv("PLANNER_PROMETHEUS_TOKEN", "two\nlines")
    with pytest.raises(InputError, match="holds no token"):
        Prometheus(fake.url)
    # without a token nothing is taken from .netrc either
    monkeypatch.delenv("PLANNER_PROMETHEUS_TOKEN")
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with pytest.raises(InputError):
        ask(fake)
    assert fake.seen[-1][1] is None


@pytest.mark.parametrize(
    "url", ["9090", "ftp://host", "http://", "http://h:x", "http://h/?q=1", "http://a:b@h:1", ""]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="--prometheus"):
        Prometheus(url)


def test_a_long_span_is_asked_in_steps_that_the_server_takes(serve: Callable[..., Fake]) -> None:
    fake = serve(lambda _: (200, whole([], 0)))
    Prometheus(fake.url).query_range("step", "x", START, START + 90 * 86_400.0)
    step = float(fake.seen[0][0].rpartition("step=")[2])
    assert 90 * 86_400.0 / step <= MOST_POINTS


def test_queries_carry_the_selector_and_quantities_that_are_known() -> None:
    made = dict(reversed(queries(run_selector('a"b'), {"step": "max(mine)"})))
    assert made["step"] == "max(mine)" and '{planner_run_id="a\\"b"}' in made["loader_s"]
    assert {name for name, _ in default_queries()} <= {"step", "tokens", "nodes", *MEASURES}
    with pytest.raises(InputError, match="--metric stepp="):
        queries("", {"stepp": "x"})


# --- a real server ---


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, float]]:
    """Prometheus on loopback with two hours of a run; address, run id and the moment of the last sample."""
    for name in ("prometheus", "promtool"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed (apt-get install prometheus)")
    folder = tmp_path_factory.mktemp("prometheus")
    run_id, end = spot_plan().run_id, float(int(time.time()) // 60 * 60 - 600)
    (folder / "metrics.txt").write_text(open_metrics(run_id, end), encoding="utf-8")
    data = folder / "data"
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(folder / "metrics.txt"), str(data)],
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    (folder / "c.yml").write_text("global: {}\n", encoding="utf-8")
    for _ in range(5):  # a port that was free may be taken before the server binds it
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        process = subprocess.Popen(
            ["prometheus", f"--config.file={folder / 'c.yml'}", f"--storage.tsdb.path={data}",
             f"--web.listen-address={address}", "--log.level=error"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            if _is_ready(process, address):
                yield f"http://{address}", run_id, end
                return
        finally:
            process.kill()  # the folder is thrown away
            process.wait()
    pytest.fail("prometheus did not start")


def _is_ready(process: subprocess.Popen[bytes], address: str) -> bool:
    """Wait until the server answers; False where it ended."""
    until = time.monotonic() + 180.0
    while process.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://{address}/-/ready", timeout=10) as answer:
                if answer.status == 200:
                    return True
        except OSError:
            time.sleep(0.05)
    return False


def open_metrics(run_id: str, end: float) -> str:
    """Two hours: a step a minute, 15 minutes away after the first, a loader that takes 30 % of the step."""
    at = np.arange(end - 7200.0, end + 1.0, 15.0)
    since = at - at[0]
    gone = (since > 3600) & (since < 4500)
    step = np.where(since < 4500, since // 60, 55 + (since - 4500) // 60)
    label = f'{{planner_run_id="{run_id}",Hostname="a",gpu="0"}}'
    unsupported = f'{{planner_run_id="{run_id}",Hostname="b",gpu="0"}}'
    lines = []
    for name, value in (
        ("training_step", step), ("training_step_seconds", step * 0 + 60), ("training_loader_seconds", step * 0 + 18),
        ("DCGM_FI_DEV_GPU_UTIL", step * 0 + 62), ("DCGM_FI_DEV_GPU_TEMP", step * 0 + 50),
    ):  # fmt: skip
        lines.append(f"# TYPE {name} gauge")
        kept = zip(at[~gone].tolist(), value[~gone].tolist(), strict=True)
        lines += [f"{name}{label} {figure} {moment}" for moment, figure in kept]
    lines.append("# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge")
    lines += [
        f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{unsupported} 9223372036854775794 {moment}" for moment in at.tolist()
    ]
    return "\n".join([*lines, "# EOF", ""])


def test_a_real_server_tells_progress(server: tuple[str, str, float]) -> None:
    url, run_id, end = server
    found = read_metrics(Prometheus(url), run_selector(run_id), end - 7200.0, end)
    intervals = intervals_of(found)
    assert found.kind == "prometheus" and intervals.step_s == pytest.approx(60.0, rel=0.05)
    assert intervals.fell_back.sum() == 1 and found.step[-1] == 100
    # profiling counters are not supported on this GPU, so the plain utilisation counts
    assert np.nanmean(found.measures["gpu_busy"]) == pytest.approx(0.62)
    assert np.nanmean(found.measures["loader_s"]) == pytest.approx(18.0) and set(found.nodes.tolist()) <= {
        1.0
    }


def test_a_real_server_refuses_a_wrong_query_and_knows_no_other_run(server: tuple[str, str, float]) -> None:
    url, _, end = server
    with pytest.raises(InputError, match=r"the query of step is refused.*parse error"):
        read_metrics(Prometheus(url), "", end - 7200.0, end, {"step": "max(training_step"})
    with pytest.raises(InputError, match="no sample of the step"):
        read_metrics(Prometheus(url), run_selector("run-another"), end - 7200.0, end)
    long = Prometheus(url).query_range("step", "max(training_step)", end - 10 * 86_400.0, end)
    assert len(long) > 10


def test_the_command_asks_the_server(server: tuple[str, str, float], run_cli: Run, tmp_path: Path) -> None:
    from dataclasses import replace
    from datetime import UTC, datetime, timedelta

    url, run_id, end = server
    start = datetime.fromtimestamp(end - 7200.0, UTC)
    plan = replace(
        spot_plan(None), start=start.isoformat(), stated_run_id=run_id,
        finish_expected=(start + timedelta(hours=120)).isoformat(),
    )  # fmt: skip
    plan.save(tmp_path / "plan.json")
    words = ("track", str(tmp_path / "plan.json"), "--prometheus", url, "-o", "json")
    result = run_cli(*words, "--now", datetime.fromtimestamp(end, UTC).isoformat())
    assert result.code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["causes"][0]["cause"] == "loader" and found["interruptions"]["seen"] == 1
    assert found["done_steps"] == pytest.approx(101, abs=1)
    wrong = run_cli(*words, "--selector", "x=")
    assert wrong.code == 2 and "refused" in wrong.stderr
