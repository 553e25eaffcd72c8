#!/usr/bin/env python3
"""The manifests are in order, and the check finds it when they are not: `python3 check_test.py`."""

import unittest
from pathlib import Path

import check

MANIFESTS = sorted(Path(__file__).parent.glob("*.yaml"))

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
    ("NetworkPolicy", ["spec", "podSelector", "matchLabels", "app"], "else"),
    ("Role", ["rules", 0, "verbs"], None),
    ("RoleBinding", ["roleRef", "name"], "else"),
    ("Fleet", ["metadata"], None),
    ("Fleet", ["spec", "replicas"], "2"),
    ("Fleet", ["spec", "template", "spec", "counter"], {}),
    ("Fleet", ["spec", "template", "spec", "counters", "players", "capacity"], "32"),
    ("Fleet", ["spec", "template", "spec", "ports", 0, "portPolicy"], "dynamic"),
    ("Fleet", ["spec", "template", "spec", "ports", 0, "containerPort"], 70000),
    ("Fleet", ["spec", "template", "spec", "eviction", "safe"], "Sometimes"),
    ("Fleet", POD + ["terminationGracePeriod"], 60),
    ("Fleet", POD + ["containers", 0, "imagePullPolice"], "Always"),
    ("Fleet", POD + ["initContainers", 0, "name"], None),
    ("Fleet", POD + ["volumes", 1, "emptyDir", "medium"], 1),
    ("FleetAutoscaler", ["spec", "fleetName"], "else"),
    ("FleetAutoscaler", ["spec", "policy", "type"], "Counters"),
    ("FleetAutoscaler", ["spec", "policy", "counter", "key"], "player"),
    ("FleetAutoscaler", ["spec", "policy", "counter", "maxCapacity"], None),
    ("FleetAutoscaler", ["spec", "policy", "counter", "bufferSize"], 0),
    ("GameServerAllocation", ["spec", "selectors"], []),
    ("GameServerAllocation", ["spec", "selectors", 0, "matchLabels", "agones.dev/fleet"], "else"),
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
        self.assertEqual(len(MANIFESTS), 4)
        self.assertEqual(check.problems(check.read(MANIFESTS)), [])

    def test_each_mistake_is_found(self):
        for kind, path, value in MISTAKES:
            with self.subTest(kind=kind, path=path, value=value):
                manifests = check.read(MANIFESTS)
                spoil(manifests, kind, path, value)
                found = check.problems(manifests)
                self.assertTrue(found and all(problem.startswith(kind) for problem in found), found)


if __name__ == "__main__":
    unittest.main()
