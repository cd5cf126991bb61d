"""pytest plugin: run a training script or a function on real gloo ranks.

::

    @pytest.mark.world_size(3)
    def test_my_sampler(gloo_world):
        run = gloo_world.run("train.py", "--epochs", "2")
        assert judge("partitions", run).holds

Loaded by pytest through its entry point, so it costs nothing until a test asks for
``gloo_world``; torch is imported by the process that runs the ranks, never by pytest's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sampler_lint.harness.runs import Run
    from sampler_lint.harness.world import World


class GlooWorld:
    """Ranks for one test, as many as its ``world_size`` marker says (two without)."""

    def __init__(self, world: World, world_size: int) -> None:
        self._world = world
        self.world_size = world_size

    def run(
        self,
        program: str | os.PathLike[str] | Callable[..., object],
        *args: Any,
        timeout: float = 30.0,
    ) -> Run:
        """Run a script, or call a module-level function, on every rank.

        A script gets ``args`` as its command line; a function as arguments, which must fit JSON.
        Nothing is raised for what happens in the ranks: the returned run says it.

        Raises:
            HarnessError: torch is missing or broken, or there is no such program.
        """
        if callable(program):
            return self._world.run_function(
                program, args, world_size=self.world_size, timeout=timeout
            )
        arguments = [str(arg) for arg in args]
        return self._world.run(program, arguments, world_size=self.world_size, timeout=timeout)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "world_size(n): how many ranks gloo_world starts")


@pytest.fixture(scope="session")
def gloo_session() -> Iterator[World]:
    """The process that all tests of a session fork their ranks from."""
    from sampler_lint.harness.world import World

    with World() as world:
        yield world


@pytest.fixture
def gloo_world(request: pytest.FixtureRequest, gloo_session: World) -> GlooWorld:
    """Runs programs on gloo ranks, recorded; see :class:`GlooWorld`."""
    marker = request.node.get_closest_marker("world_size")
    return GlooWorld(gloo_session, marker.args[0] if marker else 2)
