"""Each setting that the stubs offer is one. mypy's stubtest cannot see these: they are keyword arguments of any name."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import whitewater as ww
from common import SECRET, SESSION

STUB = Path(ww.__file__).with_name("_whitewater.pyi")
KEY = ww.ServerKey(1, 0, SECRET)
POSITIONAL: dict[str, list[Any]] = {
    "SessionConfig.__new__": [],
    "KcpConfig.__new__": [],
    "KcpConfig.classic": [],
    "KcpConfig.bulk": [],
    "Channel.ordered": [0],
    "Channel.unordered": [0],
    "Channel.sequenced": [0],
    "Channel.unreliable": [0],
    "Channel.stream": [0],
    "ClientConfig.__new__": [SESSION, ww.Suite.TOKEN],
    "ClientConfig.secret": [SESSION, SECRET],
    "ClientConfig.token": [SESSION, KEY.mint(7, 1, [("127.0.0.1", 4000)])],
    "ClientConfig.insecure": [SESSION],
    "ServerConfig.__new__": [SESSION, [ww.Suite.TOKEN]],
    "ServerConfig.secret": [SESSION, SECRET],
    "ServerConfig.tokens": [SESSION, KEY],
    "ServerConfig.insecure": [SESSION],
}


def offered() -> list[tuple[str, str]]:
    """Functions with settings, and the names of these."""
    found = []
    for kind in ast.parse(STUB.read_text()).body:
        if not isinstance(kind, ast.ClassDef):
            continue
        for function in kind.body:
            if isinstance(function, ast.FunctionDef):
                found += [(f"{kind.name}.{function.name}", setting.arg) for setting in function.args.kwonlyargs]
    return [(function, setting) for function, setting in found if function in POSITIONAL]


@pytest.mark.parametrize(("function", "setting"), offered())
def test_a_setting_of_the_stubs_is_one_of_the_library(function: str, setting: str) -> None:
    kind, method = function.split(".")
    make = getattr(ww, kind) if method == "__new__" else getattr(getattr(ww, kind), method)
    with pytest.raises((TypeError, ww.ConfigError)) as caught:
        make(*POSITIONAL[function], **{setting: object()})
    assert f"`{setting}`" in str(caught.value) and "has no setting" not in str(caught.value), caught.value


def test_the_stubs_offer_settings_of_every_config() -> None:
    assert {function for function, _ in offered()} == set(POSITIONAL) and len(offered()) > 120
