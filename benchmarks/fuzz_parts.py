"""`python -m benchmarks.fuzz_parts --n 3000`: broken files that options and keys name, and what the program keeps.

`benchmarks.fuzz` breaks what a command is asked; here are the files beside it: rates, usage, ledgers, records of spot
capacity, tables of a portfolio, keys and statements of signed catalogs, Python scripts, calibrations, results of
sweeps. Each goes through the function that reads it, without the command around it: hundreds a second. A reader may
return or raise an error of the planner that has a name; anything else, above 10 s of processor time or 1 GiB, is a
fault and printed with its seed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.fuzz import EXAMPLES, FIXTURES, LATEST_S, MOST_KIB, exchanged, scrambled

LONGEST_LINE = 1_000  # characters of a message
DEPTH = 100_000  # brackets: more than any reader may follow
# Above a float, above what int() reads, a digit that int() refuses.
NUMBERS = (b"1" + b"0" * 400, b"9" * 5_000, b"1e999", "²".encode(), b"nan")
DAY = datetime(2026, 11, 20, tzinfo=UTC)
Read = Callable[[Path], object]


@dataclass(frozen=True)
class Part:
    """A kind of file and the function that reads it.

    Attributes:
        seeds: good files: suffix and text.
        read: takes the path.
        name: of the file, where a reader looks for it by name, else `broken` and the suffix.
        beside: texts of other files of the folder, by name.
        mode: of the file.
    """

    seeds: tuple[tuple[str, bytes], ...]
    read: Read
    name: str = ""
    beside: Mapping[str, bytes] = field(default_factory=dict)
    mode: int = 0o644


def text_seed(suffix: str, text: str) -> tuple[str, bytes]:
    """A good file of text."""
    return suffix, text.encode("utf-8")


def json_seed(value: Any) -> tuple[str, bytes]:
    """A good file of JSON."""
    return ".json", json.dumps(value).encode("utf-8")


def parts(folder: Path) -> dict[str, Part]:
    """Every part by name; what must be made first lies in the folder."""
    return {
        **_of_bills(),
        **_of_spot(),
        **_of_tables(),
        **_of_trainers(),
        **_of_trust(folder),
        **_of_copies(),
    }


def _of_bills() -> dict[str, Part]:
    from planner.finops.forecast.score import load_saved
    from planner.finops.ledger.book import open_book
    from planner.finops.read.mapping import read_mapping
    from planner.finops.read.rates import load_rates
    from planner.finops.usage import load_usage
    from planner.finops.utilisation import load_utilisation
    from tests.planner.finops.usage.test_read import SACCT, gpu, prometheus

    rates = "date,from,to,rate\n2026-10,EUR,USD,1.17\n2026-10-15,GBP,USD,1.33\n2026-10-01,CNY,USD,0.14\n"
    busy = (
        "date,run_id,allocated_gpu_hours,busy_gpu_hours,goodput_gpu_hours,lost_gpu_hours,tokens,eflop\n"
        "2026-10-01,run-a,64,60.5,58,1.5,1e9,12\n2026-10-02,,32,,,,,\n"
    )
    allocation = {"code": 200, "data": [{"a/b": {"name": "a/b", "gpuHours": 12.5, "minutes": 1440.0,
                  "start": "2026-10-01T00:00:00Z", "end": "2026-10-02T00:00:00Z",
                  "properties": {"namespace": "nlp", "node": "n1", "controller": "run-a"}}}]}  # fmt: skip
    ledger = (FIXTURES / "versions" / "ledger.v1.json").read_bytes()
    forecast = {"last_day": "2026-10-10", "scopes": [{"periods": [{"scope": "all", "start": "2026-10-01"}]}]}
    return {
        "map file": Part(
            (text_seed(".csv", "column,focus\nCost,BilledCost\n'Usage',ChargeCategory\n"),),
            lambda path: read_mapping((), path),
        ),
        "rates": Part((text_seed(".csv", rates),), lambda path: load_rates(path, "USD")),
        "utilisation": Part((text_seed(".csv", busy),), load_utilisation),
        "usage": Part(
            (text_seed(".txt", SACCT), json_seed(prometheus((gpu(), [50.0] * 8))), json_seed(allocation)),
            lambda path: load_usage([path]),
        ),
        "ledger": Part(((".json", ledger),), lambda path: open_book(path)),
        "saved forecast": Part((json_seed(forecast),), lambda path: load_saved([str(path)])),
    }


def _of_spot() -> dict[str, Part]:
    from planner.inputs.fio import read_fio
    from planner.inputs.load import load_workload
    from planner.spot.hints import read_hints
    from planner.spot.traces.registry import read_traces
    from tests.planner.spot.test_hints import PRICES, TYPE, entry

    samples = {"metadata": {"start_time": "2026-10-01T00:00:00", "gap_seconds": 600}, "data": [0, 4] * 200}
    zone = {
        "rle": [[4, 20], [0, 3], [8, 40]],
        "start_utc": "2026-10-01T00:00:00+00:00",
        "on_demand_price": 32.77,
        "spot_price_rle": [[9.8, 30], [11.2, 33]],
        "itype": "p4d.24xlarge",
    }
    runs = {"gap_seconds": 600, "requested": 4, "set": "s", "zones": {"us-east-1a": zone}}
    failed = "".join(f"{n},2022-10-26T{n // 6:02d}:{n % 6}0:00,{n % 9 == 0:d}\n" for n in range(40))
    probes = "time,zone,available\n" + "".join(
        f"2026-10-01T{hour:02d}:00Z,us-east-1a,{hour % 7 > 0:d}\n" for hour in range(24)
    )
    waits = (
        "asked_at,started_at,until,purchase_option,accelerators,provider\n"
        "2026-10-01T00:00Z,2026-10-01T02:00Z,,spot,8,aws\n2026-10-02T00:00Z,,2026-10-03T00:00Z,on_demand,16,gcp\n"
    )
    asked = _asked("constraints: {waiting_records: [broken.csv]}\n")
    fio = {"jobs": [{"read": {"bw_bytes": 2_000_000_000}, "write": {"bw_bytes": 900_000_000}}]}
    return {
        "traces": Part(
            (text_seed(".csv", probes), json_seed(samples), json_seed(runs), text_seed(".txt", failed)),
            lambda path: read_traces(path),
        ),
        "spot prices": Part(
            (
                text_seed(
                    ".csv", f"{PRICES}2026-11-01,us-east-1a,{TYPE},9\n2026-11-02,us-east-1b,{TYPE},15\n"
                ),
                json_seed(
                    {"SpotPriceHistory": [entry("us-east-1a", "9.0", 1, AvailabilityZoneId="use1-az1")]}
                ),
                json_seed(
                    {
                        "InstanceTypes": [TYPE],
                        "SpotPlacementScores": [
                            {"AvailabilityZoneId": "use1-az1", "Region": "us-east-1", "Score": 3}
                        ],
                    }
                ),
            ),
            read_hints,
        ),
        "waiting records": Part(
            (text_seed(".csv", waits),),
            lambda path: load_workload(path.with_name("asked.yaml"), cache=False),
            beside={"asked.yaml": asked},
        ),
        "fio": Part((json_seed(fio),), read_fio),
    }


def _asked(more: str) -> bytes:
    from benchmarks.fuzz import TINY

    return (TINY + more).encode("utf-8")


def _of_tables() -> dict[str, Part]:
    from catalogs.offers.static import load_static
    from planner.commitments.scenarios import read_futures
    from planner.inputs.portfolio_load import load_portfolio
    from planner.inputs.schedule_load import load_schedule
    from planner.inputs.serving_load import load_serving
    from planner.portfolios.sized import sized_from_csv

    def question(example: str, old: str, new: str) -> bytes:
        text = (EXAMPLES / example).read_text(encoding="utf-8")
        if old not in text:
            raise RuntimeError(f"{example} has no {old!r}")
        return text.replace(old, new).encode("utf-8")

    def asked(load: Callable[[Path], object]) -> Read:
        return lambda path: load(path.with_name("asked.yaml"))

    days = "".join((EXAMPLES / "commit-usage.csv").read_text(encoding="utf-8").splitlines(keepends=True)[:60])
    forecast = (EXAMPLES / "schedule-forecast.csv").read_bytes()
    jobs = "name,workload,deadline,priority\nfirst,tiny.yaml,3d,1\nsecond,tiny.yaml,,2\n"
    speeds = "machine,bucket,requests_per_s\nl4,long,0.02\n"
    sized = "job,provider,region,instance_type,nodes,hours,cost_usd\nfirst,aws,us-east-1,p4d.24xlarge,2,10,655.4\n"
    futures = (
        "scenario,hour,pool,instances,probability\nlow,0,a10,4,0.5\nhigh,2027-03-01T00:00Z,t4,12.5,0.5\n"
    )
    machines = (
        "provider,region,instance_type,accelerator,accelerator_count,vcpus,memory_gib,nodes,purchase_option,"
        "price_per_hour,currency\nneo,us-1,gpu-box,h100-80gb-sxm,8,128,2048,16,on_demand,19.9,USD\n"
    )
    tiny = _asked("")
    return {
        "quotations": Part(
            (text_seed(".csv", machines),),
            lambda path: load_static(path, DAY.date()),
        ),
        "jobs of a portfolio": Part(
            (text_seed(".csv", jobs),),
            asked(load_portfolio),
            beside={
                "asked.yaml": b"version: 1\nkind: portfolio\nname: p\njobs_csv: broken.csv\n",
                "tiny.yaml": tiny,
            },
        ),
        "demand": Part(
            (text_seed(".csv", days),),
            _history,
            beside={"asked.yaml": (EXAMPLES / "commit.yaml").read_bytes()},
            name="commit-usage.csv",
        ),
        "forecast of a schedule": Part(
            ((".csv", forecast),),
            asked(load_schedule),
            beside={"asked.yaml": (EXAMPLES / "schedule.yaml").read_bytes()},
            name="schedule-forecast.csv",
        ),
        "sized candidates": Part(
            (text_seed(".csv", sized),), lambda path: sized_from_csv(path, _decoded(path))
        ),
        "scenarios": Part(
            (text_seed(".csv", futures),),
            lambda path: read_futures(path, _pools(path), DAY.date(), 3),
            beside={"asked.yaml": (EXAMPLES / "commit.yaml").read_bytes()},
        ),
        "speeds": Part(
            (text_seed(".csv", speeds),),
            asked(load_serving),
            beside={
                "asked.yaml": question("serving.yaml", "version: 1\n", "version: 1\nspeeds_csv: broken.csv\n")
            },
        ),
    }


def _history(path: Path) -> object:
    from planner.commitments.history import read_history

    return read_history(path, _pools(path))


def _pools(path: Path) -> Any:
    from planner.inputs.commit_load import load_commit

    return load_commit(path.with_name("asked.yaml")).question.pools


def _decoded(path: Path) -> str:
    from planner.inputs.load import decode

    return decode(path.read_bytes(), str(path))


def _of_trainers() -> dict[str, Part]:
    from planner.inputs.model_config import model_of_config, parse_json
    from planner.trainer_files.answer import workload_from
    from planner.trainer_files.gather import Wishes
    from tests.planner.inputs.test_model_config import PUBLISHED
    from tests.planner.trainer_files.fixtures_of_trainers import NEMO_RECIPE, TRAINER_SCRIPT, XTUNER

    cells = [{"cell_type": "code", "source": TRAINER_SCRIPT.splitlines(keepends=True)}]
    configs = tuple(json_seed(values) for _, values in PUBLISHED)
    return {
        "script in Python": Part(
            tuple(text_seed(".py", text) for text in (TRAINER_SCRIPT, NEMO_RECIPE, XTUNER)),
            lambda path: workload_from([path], Wishes()),
        ),
        "notebook": Part(
            ((".ipynb", json.dumps({"cells": cells}).encode("utf-8")),),
            lambda path: workload_from([path], Wishes()),
        ),
        "config.json": Part(
            configs,
            lambda path: model_of_config(parse_json(_decoded(path), str(path)), str(path)),
        ),
    }


def _of_trust(folder: Path) -> dict[str, Part]:
    """A signed catalog: what is checked before its prices are read; without its library none of it is read."""
    from catalogs.store.read import bundled_directory
    from catalogs.store.signing import make_key_pair, read_private_key, sign_catalog
    from catalogs.store.statement import STATEMENT, open_statement, read_public_keys

    key = folder / "prices.key"
    public, _ = make_key_pair(key)
    source = folder / "source"
    source.mkdir()
    (source / "lambda").symlink_to(bundled_directory() / "lambda")
    sign_catalog(key, folder / "signed", 30, directory=source, now=datetime.now(UTC) - timedelta(days=1))
    return {
        "public key": Part(((".pem", public.read_bytes()),), read_public_keys),
        "private key": Part(((".pem", key.read_bytes()),), read_private_key, mode=0o600),
        "signed statement": Part(
            ((".json", (folder / "signed" / STATEMENT).read_bytes()),),
            lambda path: open_statement(path.parent, public),
            name=STATEMENT,
        ),
    }


def _of_copies() -> dict[str, Part]:
    from planner.calibration.store import load
    from planner.engines.resume import Parts
    from planner.finops.cube import MANIFEST, read_cube

    lines = "".join(json.dumps({"key": f"k{n}", "value": {"cost": n}}) + "\n" for n in range(8))
    rows = b"rows of a cube"
    cube = {
        "schema_version": 1, "grain": "day", "tags": ["team"], "currency": "USD", "months": ["2026-10"], "rows": 1,
        "charges": 3, "billed": 1.0, "effective": 0.9, "sources": [["bill.csv", "0"]],
        "files": {"focus-2026-10.parquet": hashlib.sha256(rows).hexdigest()},
    }  # fmt: skip
    return {
        "calibration": Part(((".json", (FIXTURES / "versions" / "calibration.v1.json").read_bytes()),), load),
        "results of a sweep": Part(
            (text_seed(".jsonl", lines),), lambda path: Parts(path.parent).read(), name="part-000001.jsonl"
        ),
        "manifest of a cube": Part(
            (json_seed(cube),),
            lambda path: read_cube(path.parent),
            name=MANIFEST,
            beside={"focus-2026-10.parquet": rows},
        ),
    }


class _SlowError(BaseException):
    pass


def _too_slow(*_: object) -> None:
    raise _SlowError


def outcome(part: Part, path: Path) -> str:
    """What gave way, empty where nothing did."""
    from catalogs.errors import CatalogError
    from planner.errors import PlannerError

    signal.signal(signal.SIGPROF, _too_slow)
    signal.setitimer(signal.ITIMER_PROF, LATEST_S)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            part.read(path)
    except (PlannerError, CatalogError) as error:
        lines = [line.removeprefix(str(path)) for line in str(error).splitlines()]
        if not lines or max(map(len, lines)) > LONGEST_LINE:
            return f"says nothing or floods the screen: {str(error)[:80]}"
        return ""
    except _SlowError:
        return f"above {LATEST_S} s"
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        return f"{type(error).__name__}: {str(error)[:120]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def put(part: Part, folder: Path, suffix: str, data: bytes) -> Path:
    """Write the file and what lies beside it."""
    for name, text in part.beside.items():
        if not (folder / name).exists():
            (folder / name).write_bytes(text)
    path = folder / (part.name or f"broken{suffix}")
    path.write_bytes(data)
    path.chmod(part.mode)
    return path


def broken(part: Part, draw: random.Random) -> tuple[str, bytes]:
    """One broken file: a value exchanged, bytes changed, an odd number, or brackets without end."""
    suffix, data = draw.choice(part.seeds)
    chance = draw.random()
    if chance < 0.01:
        return suffix, draw.choice((b"[", b'{"a":', b"(")) * DEPTH
    if chance < 0.05 and (found := list(re.finditer(rb"\d+", data))):
        number = draw.choice(found)
        return suffix, data[: number.start()] + draw.choice(NUMBERS) + data[number.end() :]
    if suffix in (".json", ".yaml", ".ipynb") and chance < 0.7:
        text = exchanged(data.decode("utf-8"), draw, is_json=suffix != ".yaml")
        return suffix, text.encode("utf-8", "surrogatepass")
    return suffix, scrambled(data, draw)


def tried(name: str, part: Part, count: int, seed: int, folder: Path) -> Iterator[tuple[int, str]]:
    """Number and fault of every file that gave way."""
    for number in range(count):
        draw = random.Random(f"{name}/{seed}/{number}")
        path = put(part, folder, *broken(part, draw))
        if gave := outcome(part, path):
            yield number, gave


def main() -> int:
    """Run; exit code 1 where something gave way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=300, help="files of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    asked = parser.parse_args()
    faults = 0
    with tempfile.TemporaryDirectory() as made:
        known = parts(Path(made))
        if unknown := set(asked.only) - set(known):
            parser.error(f"--only {', '.join(sorted(unknown))}: not one of {', '.join(known)}")
        for name in asked.only or known:
            begin = time.process_time()
            with tempfile.TemporaryDirectory() as folder:
                for number, gave in tried(name, known[name], asked.n, asked.seed, Path(folder)):
                    faults += 1
                    print(f"  {name} {asked.seed}/{number}: {gave}", flush=True)
            print(f"{name}: {asked.n} files, {time.process_time() - begin:.1f} CPU s", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{faults} gave way; peak {peak >> 10} MiB")
    return 1 if faults or peak > MOST_KIB else 0


if __name__ == "__main__":
    sys.exit(main())
