"""Which ranks train one model together, so that they have to share out its data."""

from __future__ import annotations

from collections.abc import Iterable

from sampler_lint.harness.runs import Log, Run


def teams(run: Run) -> list[list[int]] | None:
    """The places in ``run.ranks`` of those that average their gradients; None: nobody knows.

    Wrappers say with whom they average. Where there are none, ranks whose optimizers are given
    the same gradients do.
    """
    logs = [rank.log for rank in run.ranks]
    told = [group for log in logs for group in log.averages]
    if told:
        numbers = {rank.rank: place for place, rank in enumerate(run.ranks)}
        return _joined(len(logs), ([numbers[r] for r in one if r in numbers] for one in told))
    if not any(log.gradients for log in logs):
        return None
    places = range(len(logs))
    pairs = ([a, b] for a in places for b in places if a < b and _learn_alike(logs[a], logs[b]))
    return _joined(len(logs), pairs)


def apart(run: Run) -> set[int]:
    """The sizes of groups among these ranks that do something else than average gradients."""
    averages = {len(group) for rank in run.ranks for group in rank.log.averages}
    team = {rank.rank for rank in run.ranks}
    return {len(one) for rank in run.ranks for one in rank.log.groups if team > {*one}} - averages


def parted(run: Run) -> list[list[int]]:
    """The places of ranks that hold parts of one model, without averaging: they read alike."""
    numbers = {rank.rank: place for place, rank in enumerate(run.ranks)}
    together = teams(run) or []
    logs = [rank.log for rank in run.ranks]
    groups = {group for log in logs for group in (*log.parts, *log.exchanges)}
    found = [sorted(numbers[one] for one in group if one in numbers) for group in sorted(groups)]
    return [one for one in found if not any(set(one) <= set(team) for team in together)]


def exchange(run: Run) -> bool:
    """Whether all of these ranks exchange what they make of each sample, as those do of which each
    computes a part."""
    numbers = {rank.rank: place for place, rank in enumerate(run.ranks)}
    groups = [group for rank in run.ranks for group in rank.log.exchanges]
    inside = ([numbers[one] for one in group if one in numbers] for group in groups)
    return len(_joined(len(numbers), inside)) == 1


def _learn_alike(one: Log, other: Log) -> bool:
    """Whether some optimizer was given the same gradients on both, at each step looked at."""
    for number in {optimizer for optimizer, _ in one.gradients}:
        pairs = [
            (digest, other.gradients[key])
            for key, digest in one.gradients.items()
            if key[0] == number and digest is not None and key in other.gradients
        ]
        # At the first step they may be alike by chance.
        if len(pairs) > 1 and all(left == right for left, right in pairs):
            return True
    return False


def _joined(size: int, groups: Iterable[list[int]]) -> list[list[int]]:
    """The places in teams: those that share a group, however many lie between."""
    team = list(range(size))
    for group in groups:
        meant = {team[place] for place in group}
        team = [min(meant) if one in meant else one for one in team]
    return [[place for place in range(size) if team[place] == one] for one in sorted(set(team))]
