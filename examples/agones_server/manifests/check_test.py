#!/usr/bin/env python3
"""The manifests are in order, and the check finds it when they are not: `python3 check_test.py`."""

import unittest
from pathlib import Path

import check

MANIFESTS = sorted(Path(__file__).parent.glob("*.yaml"))


def counter(**changes):
    """A policy that counts places, which suits servers with many of them."""
    policy = {"key": "players", "bufferSize": 64, "maxCapacity": 3200} | changes
    return {"type": "Counter", "counter": {key: value for key, value in policy.items() if value is not None}}


# Kind, path to a field, and what to put there; `None` takes it away.
POD = ["spec", "template", "spec", "template", "spec"]
MISTAKES = [
    ("Deployment", ["spec", "replica"], 2),
    ("Deployment", ["spec", "replicas"], "2"),
    ("Deployment", ["spec", "selector"], None),
    ("Deployment", ["spec", "selector", "matchLabels", "app"], "else"),
    ("Deployment", ["spec", "template", "spec", "containers", 0, "ports", 0, "hostPort"], "4000"),
    ("Deployment", ["spec", "template", "spec", "containers", 0, "image"], 1),
    ("Deployment", ["apiVersion"], "apps/v1beta1"),
    ("Service", ["spec", "selector"], None),
    ("Service", ["spec", "selector", "app"], "else"),
    ("Service", ["spec", "ports", 0, "port"], None),
    ("PodDisruptionBudget", ["spec", "minimumAvailable"], 1),
    ("PodDisruptionBudget", ["spec", "selector"], None),
    ("Deployment", ["spec", "template", "spec", "volumes", 0, "name"], "else"),
    ("NetworkPolicy", ["spec", "podSelector", "matchLabels", "app"], "else"),
    ("Fleet", ["metadata"], None),
    ("Fleet", ["spec", "replicas"], "2"),
    ("Fleet", ["spec", "template", "spec", "counter"], {}),
    ("Fleet", ["spec", "template", "spec", "counters", "players", "capacity"], "32"),
    ("Fleet", ["spec", "template", "spec", "ports", 0, "portPolicy"], "dynamic"),
    ("Fleet", ["spec", "template", "spec", "ports", 0, "containerPort"], 70000),
    ("Fleet", ["spec", "template", "spec", "eviction", "safe"], "Sometimes"),
    ("Fleet", POD + ["terminationGracePeriod"], 60),
    ("Fleet", POD + ["containers", 0, "imagePullPolice"], "Always"),
    ("Fleet", POD + ["containers", 0, "name"], None),
    ("Fleet", POD + ["containers", 0, "env", 0, "value"], "else:8443"),
    ("Fleet", POD + ["containers", 0, "env", 1, "value"], "/matchmaker/fleet.key"),
    ("Fleet", POD + ["containers", 0, "volumeMounts", 0, "name"], "else"),
    ("Fleet", POD + ["volumes", 0, "projected", "defaultMode"], "0440"),
    ("FleetAutoscaler", ["spec", "fleetName"], "else"),
    ("FleetAutoscaler", ["spec", "policy", "type"], "Counter"),
    ("FleetAutoscaler", ["spec", "policy", "buffer", "maxReplicas"], None),
    ("FleetAutoscaler", ["spec", "policy", "buffer", "maxReplicas"], 4),
    ("FleetAutoscaler", ["spec", "policy", "buffer", "minReplicas"], 4),
    ("FleetAutoscaler", ["spec", "policy", "buffer", "bufferSize"], 0),
    ("FleetAutoscaler", ["spec", "policy"], counter()),
    ("FleetAutoscaler", ["spec", "policy"], counter(key="player")),
    ("FleetAutoscaler", ["spec", "policy"], counter(maxCapacity=None)),
]


def spoil(manifests, kind, path, value):
    """Makes that mistake in the first manifest of that kind."""
    at = next(manifest for manifest in manifests if manifest["kind"] == kind)
    for step in path[:-1]:
        at = at[step]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value


class Manifests(unittest.TestCase):
    def test_the_manifests_are_in_order(self):
        self.assertEqual(len(MANIFESTS), 3)
        self.assertEqual(check.problems(check.read(MANIFESTS)), [])

    def test_places_are_counted_where_a_server_has_many_of_them(self):
        for capacity, is_in_order in [(2, False), (check.MANY_PLACES - 1, False), (check.MANY_PLACES, True)]:
            with self.subTest(capacity=capacity):
                manifests = check.read(MANIFESTS)
                spoil(manifests, "FleetAutoscaler", ["spec", "policy"], counter())
                spoil(manifests, "Fleet", ["spec", "template", "spec", "counters", "players", "capacity"], capacity)
                self.assertEqual(not check.problems(manifests), is_in_order)

    def test_each_mistake_is_found(self):
        for kind, path, value in MISTAKES:
            with self.subTest(kind=kind, path=path, value=value):
                manifests = check.read(MANIFESTS)
                spoil(manifests, kind, path, value)
                found = check.problems(manifests)
                self.assertTrue(found and all(problem.startswith(kind) for problem in found), found)


if __name__ == "__main__":
    unittest.main()
