"""Who uses what, on bills whose rows all have tags of their own."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from planner.finops.engine.duckdb import DuckDbEngine, set_memory
from planner.finops.kpis.registry import query_kpi

MONTH = {"start": date(2026, 10, 1), "end": date(2026, 11, 1), "tag_1": '$."team"'}
ROWS = 100_000
# 40 MB of tag texts, no two alike; teams 0 to 6, of which 6 pays most
BILL = f"""
SELECT 'p' AS ServiceProviderName, 'service-' || (range % 3) AS ServiceName,
  CAST(NULL AS VARCHAR) AS CommitmentDiscountId, 'a' AS SubAccountName, 'a' AS SubAccountId,
  'a' AS BillingAccountId, 1.0 + range % 7 AS EffectiveCost,
  '{{"team":"team-' || (range % 7) || '","note":"' || REPEAT('x', 400) || range || '"}}' AS Tags,
  TIMESTAMP '2026-10-02' AS ChargePeriodStart, 'Usage' AS ChargeCategory
FROM range({ROWS})
"""


@pytest.mark.usefixtures("own_duckdb")
def test_distinct_tag_texts_are_not_held_in_memory(tmp_path: Path) -> None:
    engine = DuckDbEngine(tmp_path)
    engine.register_view("focus", BILL)
    engine.connection.execute("SET threads = 2")
    set_memory(engine.connection, "24MB")
    limit = engine.connection.execute("SELECT current_setting('memory_limit')").fetchone()
    found = query_kpi(engine, "owners", MONTH)
    assert engine.connection.execute("SELECT current_setting('memory_limit')").fetchone() == limit
    engine.close()
    assert dict(zip(found["service"], found["owner"], strict=True)) == {
        f"service-{n}": "team-6" for n in range(3)
    }
