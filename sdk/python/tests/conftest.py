from __future__ import annotations

from collections.abc import Iterator

import pytest
from support import Clients


@pytest.fixture(params=["threads", "tasks"])
def clients(request: pytest.FixtureRequest) -> Iterator[Clients]:
    made = Clients(request.param)
    yield made
    made.close()
