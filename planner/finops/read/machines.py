"""GPUs of charges whose SkuPriceDetails do not tell them, by the machine that their words name.

Either a machine type of the bundled catalog (`p5.48xlarge`), or a number of chips, as neoclouds write it (`8x H100`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from planner.finops.engine.duckdb import HELD_ROWS, DuckDbEngine
from planner.finops.read.adapters import load_adapters
from planner.finops.read.columns import COST
from planner.finops.read.model import Finding
from planner.finops.read.select import Group, text, unit_letters

DETAILS = "SkuPriceDetails"
# Columns that name the type of a machine, such as the usage types of AWS (BoxUsage:p5.48xlarge).
NAMING = ("x_InstanceType", "SkuMeter", "x_UsageType", "x_SkuDetails", "ChargeDescription", "SkuId")
_PROVIDERS = ("ServiceProviderName", "ProviderName")
# What is charged beside a machine may name it too, and by the hour: a port, a disk.
_NO_MACHINES = ("Storage", "Networking")  # values of ServiceCategory
_WITH_GPUS = ("nvidia", "amd")
# What says of itself, before a `for`, that it is something beside the machine named after it: `CPU node for 8x H100`.
_ITSELF = "(^|[^a-z])(v?cpus?|storage|disks?|volumes?|network(ing)?|support|licen[cs]es?)($|[^a-z])"
_FOR = r"\bfor(?: [^ ]+){0,3}?"
# Google charges GPUs apart from their machine, each by the hour (docs.cloud.google.com/compute/gpus-pricing, 2026-11).
_GPU_SKU, _NO_GPU_SKU = "% gpu %running in %", "%commitment%"
_AS_GPU_SKU = "a gpu running in one"
_GPU_SKU_WORDS = re.compile(" gpu .*running in ", re.DOTALL)
# Numbers of GPUs that machines have; others are other numbers (`x86`, `744x H100`: hours of a month).
# Blocks of 4, 8 ... machines of 8 have more, before a chip: `32x H200`.
_SHORT = 2
_AZURE = "standard_"  # before its machine types
_BEFORE_TYPE = ', "InstanceType"'  # in `_details`
_COUNTS = "(?:1|2|3|4|6|8|10|16|72)"
_BLOCKS = "(?:32|64|128|256|512|1024|2048|4096)"
_COUNT = re.compile(rf"(?<![0-9]){_COUNTS}(?![0-9])")


@lru_cache(maxsize=1)
def _chips() -> tuple[str, ...]:
    """Chips in lower case without memory and form, the longest first: `h100`, `rtxa6000`."""
    from catalogs.tables.accelerators import load_accelerators

    known = load_accelerators()
    pairs = zip(map(str, known["accelerator"]), map(str, known["vendor"]), strict=True)
    names = {name.split("-", 1)[0] for name, vendor in pairs if vendor in _WITH_GPUS}
    return tuple(sorted((name for name in names if re.search("[0-9]", name)), key=lambda n: (-len(n), n)))


@lru_cache(maxsize=1)
def _counted() -> str:
    """The pattern of a number of chips in lower case.

    `8x H100`, `gpu_8x_h100_sxm5` (Lambda), `8xh100ib` (CoreWeave), `160x1792x8h100` (IBM), `H100 80GB x8`,
    `h100-80gb-sxm-ib.8x` (Crusoe), `H100 SXM, 8 GPUs`, `bm.gpu.h100.8` (OCI).
    """
    # `l4`, `p4` and `t4` are names of other things too: load balancers, disks
    short = "|".join(name for name in _chips() if len(name) == _SHORT)
    spelled = (re.sub("^(rtx|gtx)", r"\1[ _-]?", name) for name in _chips() if len(name) > _SHORT)
    chip = f"(?:{'|'.join(spelled)}|nvidia[ _-](?:{short}))"
    words = "(?:[^a-z0-9]+[a-z0-9]+){0,4}?"
    # a number without an x, as in `8a10`, is a part of many identifiers
    count = f"(?:(?:[0-9]+x)*(?:{_COUNTS}|{_BLOCKS}) ?[x×][ _-]?|(?:[0-9]+x)+{_COUNTS})"
    return "|".join(
        (
            f"{count}(?:nvidia[ _-])??{chip}(?:ib|sxm[0-9]?|pcie|nvl)?",
            f"{chip}{words}[ _-]?x ?{_COUNTS}",
            f"{chip}[a-z0-9_-]*[.]{_COUNTS}x",
            f"{chip}{words}[^a-z0-9]+{_COUNTS}[x×]?[ _-]?gpus?",
            f"[bv]m[.]gpu[.]{chip}[a-z0-9.-]*[.]{_COUNTS}",
        )
    )


@lru_cache(maxsize=1)
def gpu_machines() -> Mapping[str, tuple[float, str]]:
    """Machine types with GPUs in lower case: how many, and which; those of the bundled catalog."""
    from catalogs.store.load import load_catalog
    from catalogs.store.read import bundled_directory
    from catalogs.tables.accelerators import load_accelerators

    known = load_accelerators()
    vendors = dict(zip(map(str, known["accelerator"]), map(str, known["vendor"]), strict=True))
    types = load_catalog(bundled_directory()).instance_types
    columns = (
        types["instance_type"],
        types["accelerator"],
        types.number("accelerator_count"),
    )
    return {
        str(name).lower(): (float(count), str(chip))
        for name, chip, count in zip(*columns, strict=True)
        if vendors.get(str(chip)) in _WITH_GPUS and count > 0
    }


@lru_cache(maxsize=1)
def _meters() -> Mapping[str, str]:
    """Machine types of Azure by the names of their meters, in lower case.

    The type `Standard_ND96isr_H100_v5` has the meter `ND96isrH100v5`; others are `ND96amsr A100 v4` and
    `NC24ads_A100_v4` (prices.azure.com/api/retail/prices, meterName beside armSkuName, 2026-09).
    """
    parts = {name: name.removeprefix(_AZURE).split("_") for name in gpu_machines() if name.startswith(_AZURE)}
    return {apart.join(own): name for name, own in parts.items() if own[1:] for apart in ("_", " ", "")}


def naming_words(group: Group) -> str:
    """The expression of what names a charge's machine; NULL for charges that cannot be one.

    Empty where a file has no such words, and of exports whose adapter knows which charges have GPUs.
    """
    own = (DETAILS,) if group.adapter and DETAILS in group.columns else (*NAMING, DETAILS)
    words = [_own_words(group.columns[name]) for name in own if name in group.columns]
    told = bool(group.adapter) and not _leaves_machines(group.adapter)
    if told or not words or group.dataset != COST:
        return ""
    named, category = f"CONCAT_WS(' ', {', '.join(words)})", group.columns.get("ServiceCategory")
    if category is None:
        return named
    others = ", ".join(map(text, _NO_MACHINES))
    return f"CASE WHEN {category} IS NULL OR {category} NOT IN ({others}) THEN {named} END"


def _own_words(column: str) -> str:
    """A column's text in lower case, without what it is for where it says that it is no machine with GPUs itself."""
    words, apart = f"LOWER({column})", text(" for ")
    itself = f"SPLIT_PART({words}, {apart}, 1)"
    beside = f"REGEXP_MATCHES({itself}, {text(_ITSELF)}) AND NOT CONTAINS({itself}, 'gpu')"
    return f"CASE WHEN CONTAINS({words}, {apart}) AND {beside} THEN {itself} ELSE {words} END"


@lru_cache(maxsize=16)
def _leaves_machines(adapter: str) -> bool:
    """Whether an adapter gives the type of a machine at most: AWS leaves product/gpu empty for some types."""
    columns = next(one.columns for one in load_adapters() if one.name == adapter)
    return "InstanceType" in columns.get(DETAILS, "InstanceType")


def machine_sql(words: str) -> str:
    """The expression of the machine with GPUs that words name; an empty text where they name none."""
    return f"REGEXP_EXTRACT({words}, {text(_every())}, 1)"


def machines_named(words: Iterable[str]) -> frozenset[str]:
    """The machines with GPUs that texts in lower case name, as `machine_sql` finds them.

    Types of the catalog, or numbers of chips as the texts write them.
    """
    matches = (_pattern().search(text) for text in words)
    return frozenset(match[1] for match in matches if match)


def _is_gpu_sku(words: str) -> str:
    """The condition that words in lower case name a GPU that is sold by itself."""
    return f"({words} LIKE {text(_GPU_SKU)} AND {words} NOT LIKE {text(_NO_GPU_SKU)})"


def with_machines(
    group: Group, names: Collection[str], *, gpu_skus: bool = False, silent: str = "TRUE"
) -> Group:
    """Charges with the type and GPUs of their machines where SkuPriceDetails is missing, or an adapter's has no GPUs.

    Args:
        group: the charges.
        names: the machines that they name; of two that fit, each charge names the same one among these as among all.
        gpu_skus: whether some name a GPU that is sold by itself.
        silent: of a file with SkuPriceDetails the condition on charges that get them, see `_says_nothing`.
    """
    details, own = "CAST(NULL AS VARCHAR)", group.columns.get(DETAILS)
    words = naming_words(group)
    if names:
        group, details = _with_machines(group, names), "x_planner_details"
    if own is not None and group.adapter:
        details = f"CASE WHEN {_names_no_gpus(own)} THEN COALESCE({details}, {own}) ELSE {own} END"
        return replace(group, columns={**group.columns, DETAILS: details})
    if not names and not gpu_skus:
        return group
    if gpu_skus:
        one = text(json.dumps({"GpuCount": 1}))
        details = f"COALESCE({details}, CASE WHEN {_is_gpu_sku(words)} THEN {one} END)"
    if own is not None:
        details = f"CASE WHEN {silent} THEN {_beside_own(details, own)} ELSE {own} END"
    return replace(group, columns={**group.columns, DETAILS: details})


def _names_no_gpus(own: str) -> str:
    """The condition that SkuPriceDetails name the type of a machine and no number of GPUs."""
    return f"({own} LIKE '%InstanceType%' AND {own} NOT LIKE '%GpuCount%')"


def _beside_own(details: str, own: str) -> str:
    """What is known of a machine beside SkuPriceDetails, whose spelling of its type stays."""
    gpus = f"SPLIT_PART({details}, {text(_BEFORE_TYPE)}, 1)"  # with the brace before them
    merged = f"{gpus} || ', ' || SUBSTRING({own}, 2)"
    typed = f"{_names_no_gpus(own)} AND {own} LIKE '{{%'"
    return f"CASE WHEN {typed} THEN COALESCE({merged}, {own}) ELSE COALESCE({details}, {own}) END"


def _says_nothing(reader: DuckDbEngine, group: Group, own: str) -> str:
    """The condition that a charge's SkuPriceDetails do not tell its GPUs, and none of its provider does.

    They are missing, empty, or name the type of a machine alone.

    A provider that states them for some machines is taken at its word for the others. Empty where no charge meets it.
    """
    names = [group.columns[name] for name in _PROVIDERS if name in group.columns]
    provider = f"COALESCE({', '.join([*names, text('')])})"
    empty = f"({own} IS NULL OR {own} = {text('{}')} OR {_names_no_gpus(own)})"
    silent = [
        text(str(name))
        for (name,) in reader.rows(
            f"SELECT {provider} AS provider FROM READ_PARQUET([{', '.join(map(text, group.files))}], "
            f"union_by_name = true) GROUP BY provider HAVING BOOL_OR({empty}) "
            f"AND NOT BOOL_OR(COALESCE({own} LIKE '%GpuCount%', FALSE)) ORDER BY provider"
        )
    ]
    return f"({empty} AND {provider} IN ({', '.join(silent)}))" if silent else ""


def _with_machines(group: Group, names: Collection[str]) -> Group:
    machines, ranked = gpu_machines(), _ranked(names)
    rows = ", ".join(
        f"({text(name)}, {text(json.dumps(_details(*_machine(machines, name))))})" for name in ranked
    )
    known = f"(VALUES {rows}) AS machines(x_planner_machine, x_planner_details)"
    joined = f"LEFT JOIN {known}\n  ON machines.x_planner_machine = {_found(naming_words(group), ranked)}"
    return replace(group, beside=joined)


def _machine(machines: Mapping[str, tuple[float, str]], name: str) -> tuple[str, float, str]:
    """Type, number of chips and chip of a machine; those that a text counts are `8x H100`, however it is spelled."""
    kind = _meters().get(name, name)
    if kind in machines:
        return kind, *machines[kind]
    count, chip = _told(kind)
    return f"{count:g}x {chip.upper()}", count, chip


def _ranked(names: Collection[str]) -> list[str]:
    return sorted(names, key=lambda name: (-len(name), name))  # of two that fit, the longer


def _expression(ranked: Sequence[str]) -> str:
    # names that texts write have brackets and the like in them; that what is found is one of them is asked afterwards
    names = "|".join(re.sub("[^a-z0-9._ -]", "[^a-z0-9]", name).replace(".", "[.]") for name in ranked)
    return f"(?:^|[^a-z0-9])({names})(?:$|[^a-z0-9])"


def _found(words: str, ranked: Sequence[str]) -> str:
    return f"REGEXP_EXTRACT({words}, {text(_expression(ranked))}, 1)"


@lru_cache(maxsize=1)
def _every() -> str:
    """The pattern of all machines: types come first, so that of two that begin at one place the type counts."""
    return _expression(_ranked([*gpu_machines(), *_meters()])).replace(")(?:$", f"|{_counted()})(?:$")


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    return re.compile(_every())


def _told(name: str) -> tuple[float, str]:
    """The number of chips that a text of `_counted` tells, and which: the longest that fits, `h200` not `h20`."""
    plain = re.sub("(?<=rtx|gtx)[ _-]", "", name)
    at, chip = min(((plain.find(chip), chip) for chip in _chips() if chip in plain), key=lambda one: one[0])
    before, after = plain[:at], plain[at + len(chip) :]
    return float((re.findall("[0-9]+", before) or _COUNT.findall(after))[-1]), chip


def _details(name: str, count: float, chip: str) -> dict[str, object]:
    return {"GpuCount": count, "GpuModel": chip, "InstanceType": name}


def narrowed(reader: DuckDbEngine, group: Group, findings: list[Finding]) -> Group:
    """Charges with the units that they have, and with the machines that they name where they have no SkuPriceDetails.

    Most bills name a few units and no machine; each question to them would pay for the other hundreds of rules.

    Args:
        reader: reads the files.
        group: files of the same columns.
        findings: gets one where charges name GPUs as what they are for alone.
    """
    if group.dataset != COST:
        return group
    words, own, silent = naming_words(group), group.columns.get(DETAILS), "TRUE"
    if words and own is not None and not group.adapter:
        silent = _says_nothing(reader, group, own)
        words = words if silent else ""
    if words and reader.count_rows(group.files) > HELD_ROWS:  # few words are looked at here in less time
        before = f"SPLIT_PART({words}, ' for ', 1)"  # who names a machine there says what is charged
        purpose = f"CONTAINS({words}, ' for ') AND NOT REGEXP_MATCHES({before}, {text(_every())})"
        parts = (
            f"CASE WHEN {purpose} THEN REGEXP_EXTRACT({words}, {text(_FOR + _every())}) END",
            machine_sql(words),
            f"CASE WHEN {_is_gpu_sku(words)} THEN {text(_AS_GPU_SKU)} END",
        )
        words = f"CONCAT_WS(' ', {', '.join(parts)})"
    named = f"CASE WHEN {silent} THEN {words} END" if words else "CAST(NULL AS VARCHAR)"
    unit = group.columns.get("PricingUnit", "CAST(NULL AS VARCHAR)")
    files = ", ".join(map(text, group.files))
    found = reader.rows(
        f"SELECT {unit_letters('unit')}, named FROM (SELECT DISTINCT {unit} AS unit, {named} AS named "
        f"FROM READ_PARQUET([{files}], union_by_name = true))"
    )
    units = frozenset(unit for unit, _ in found if unit is not None)
    named_words = [words for _, words in found if words]
    gpu_skus = any(_GPU_SKU_WORDS.search(one) and "commitment" not in one for one in named_words)
    names = machines_named(named_words)
    findings += _unsure(named_words)
    return with_machines(replace(group, units=units), names, gpu_skus=gpu_skus, silent=silent)


def _unsure(named_words: Iterable[str]) -> Iterator[Finding]:
    """A warning where the first machine that a charge names is what it is for: `Reserved capacity for 8x H100`."""
    found = [match for words in named_words if (match := _purpose().search(words))]
    said = sorted({one[0].strip() for one in found if not _pattern().search(one.string[: one.start()])})
    if said:
        count = f"{len(said)} text{'s' * (len(said) > 1)}"
        yield Finding(
            "warning", "gpus_after_for",
            f"charges name GPUs only as what they are for, such as {said[0][:80]!r} ({count}): they count as these "
            "GPUs; where they are something else, say so in SkuPriceDetails ('{\"GpuCount\":0}')",
        )  # fmt: skip


@lru_cache(maxsize=1)
def _purpose() -> re.Pattern[str]:
    return re.compile(_FOR + _every())
