"""The properties of openapi.json that generated clients need."""

from __future__ import annotations

from typing import Any

from support import DOCUMENT

COMPONENTS: dict[str, Any] = DOCUMENT["components"]


def test_there_are_no_head_operations() -> None:
    assert not any("head" in item for item in DOCUMENT["paths"].values())


def test_lists_are_texts_with_commas() -> None:
    parameters = COMPONENTS["parameters"]
    assert not any(parameter["schema"].get("type") == "array" for parameter in parameters.values())
    assert all(parameters[name]["schema"]["type"] == "string" for name in ["regions", "event_ids", "bookmakers"])


def test_a_price_is_one_type_with_its_bounds_in_words() -> None:
    price = COMPONENTS["schemas"]["Price"]
    assert price["type"] == ["number", "string"] and "at least 100" in price["description"]
    assert not {"oneOf", "anyOf", "minimum", "maximum"} & set(price)


def test_errors_share_one_schema() -> None:
    errors = 0
    for item in DOCUMENT["paths"].values():
        for operation in (one for method, one in item.items() if method in ("get", "post")):
            for status, response in operation["responses"].items():
                if "$ref" in response:
                    response = COMPONENTS["responses"][response["$ref"].rsplit("/", 1)[1]]
                if int(status) >= 400 and "content" in response:
                    schema = response["content"]["application/json"]["schema"]
                    assert schema == {"$ref": "#/components/schemas/Error"}
                    errors += 1
    assert errors > 100
