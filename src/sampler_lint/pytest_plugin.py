"""pytest plugin: check a sampler's contract, or run a script or a function on real gloo ranks.

::

    def test_my_sampler_keeps_its_contract(sampler_contract):
        sampler_contract(MySampler)

    @pytest.mark.world_size(3)
    def test_my_training(gloo_world):
        run = gloo_world.run("train.py", "--epochs", "2")
        assert get("partitions").judge([run]).holds

Loaded by pytest through its entry point, so it costs nothing until a test asks for
``gloo_world``, whose torch is imported by the process that runs the ranks, or for
``sampler_contract``, which imports torch here.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sampler_lint.harness.contract import Report
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
    config.addinivalue_line(
        "markers",
        "world_size(n, ...): how many ranks gloo_world starts; the worlds sampler_contract tries",
    )


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


@pytest.fixture
def sampler_contract(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """:func:`sampler_lint.check_sampler`, in the worlds that the test's marker names."""
    from sampler_lint.harness.contract import check_sampler

    marker = request.node.get_closest_marker("world_size")
    return functools.partial(check_sampler, **({"world_sizes": marker.args} if marker else {}))
