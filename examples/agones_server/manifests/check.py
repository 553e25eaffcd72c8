#!/usr/bin/env python3
"""Checks manifests without a cluster: `python3 check.py FILE ..`; needs kubernetes-validate.

Kinds of Kubernetes are checked against its own schemas. Those of Agones are in no registry, so what these manifests use of them is written
down below; the pod in a Fleet is checked as a pod. Then: do names and selectors lead to something in these files?
"""

import sys
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

# Between 1.33 and 1.35, which Agones 1.56 and later are made for.
KUBERNETES = "1.34"


def fields(required=(), **known):
    """An object with these fields and no others."""
    return {"type": "object", "properties": known, "required": list(required), "additionalProperties": False}


def one_of(*words):
    return {"enum": list(words)}


def whole(least):
    return {"type": "integer", "minimum": least}


TEXT = {"type": "string"}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$", "maxLength": 63}
TEXTS = {"type": "object", "additionalProperties": TEXT}
META = fields(name=NAME, labels=TEXTS, annotations=TEXTS)
PORT = fields(
    name=TEXT,
    portPolicy=one_of("Dynamic", "Static", "Passthrough", "None"),
    protocol=one_of("UDP", "TCP", "TCPUDP"),
    containerPort={"type": "integer", "minimum": 1, "maximum": 65535},
)
HEALTH = fields(initialDelaySeconds=whole(0), periodSeconds=whole(0), failureThreshold=whole(1))
COUNTERS = {"type": "object", "additionalProperties": fields(count=whole(0), capacity=whole(0))}
GAME_SERVER = fields(
    ["template"],
    ports={"type": "array", "items": PORT},
    health=HEALTH,
    counters=COUNTERS,
    eviction=fields(safe=one_of("Always", "OnUpgrade", "Never")),
    template={"type": "object"},  # checked as a pod
)
BUFFER = {"anyOf": [whole(1), {"type": "string", "pattern": "^[1-9][0-9]?%$"}]}
COUNTER_POLICY = fields(
    ["key", "bufferSize", "maxCapacity"], key=TEXT, bufferSize=BUFFER, minCapacity=whole(0), maxCapacity=whole(1)
)
SELECTOR = fields(matchLabels=TEXTS, gameServerState=one_of("Ready", "Allocated"))


def kind(name, version, meta, spec):
    required = ["apiVersion", "kind", "spec"] + meta
    return fields(required, apiVersion=one_of(version), kind=one_of(name), metadata=META, spec=spec)


# Source: install/helm/agones/templates/crds of Agones 1.61. A GameServerAllocation has no definition there: pkg/apis/allocation/v1.
AGONES = {
    "Fleet": kind(
        "Fleet",
        "agones.dev/v1",
        ["metadata"],
        fields(["template"], replicas=whole(0), template=fields(["spec"], metadata=META, spec=GAME_SERVER)),
    ),
    "FleetAutoscaler": kind(
        "FleetAutoscaler",
        "autoscaling.agones.dev/v1",
        ["metadata"],
        fields(
            ["fleetName", "policy"],
            fleetName=NAME,
            policy=fields(["type", "counter"], type=one_of("Counter"), counter=COUNTER_POLICY),
        ),
    ),
    "GameServerAllocation": kind(
        "GameServerAllocation",
        "allocation.agones.dev/v1",
        [],
        fields(["selectors"], selectors={"type": "array", "minItems": 1, "items": SELECTOR}),
    ),
}


def of_schema(manifest):
    """What is wrong with a manifest by itself."""
    if manifest["kind"] not in AGONES:
        return of_kubernetes(manifest)
    validator = jsonschema.Draft202012Validator(AGONES[manifest["kind"]])
    problems = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(manifest)]
    if manifest["kind"] == "Fleet" and not problems:
        pod = {"apiVersion": "v1", "kind": "Pod", **manifest["spec"]["template"]["spec"]["template"]}
        problems += of_kubernetes(pod)
    return problems


def of_kubernetes(manifest):
    try:
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{error.json_path}: {error.message}"]
    except kubernetes_validate.SchemaNotFoundError as error:
        return [error.message]
    return []


def of_references(manifests):
    """Names and selectors that lead to nothing."""
    pods = [labels for manifest in manifests for labels in [labels_of_pods(manifest)] if labels]
    names = {(manifest["kind"], manifest.get("metadata", {}).get("name")) for manifest in manifests}
    counters = {
        (manifest["metadata"]["name"], counter)
        for manifest in manifests
        if manifest["kind"] == "Fleet"
        for counter in manifest["spec"]["template"]["spec"].get("counters", {})
    }
    for manifest in manifests:
        spec, name = manifest.get("spec", {}), f"{manifest['kind']} {manifest.get('metadata', {}).get('name')}"
        match manifest["kind"]:
            case "Deployment":
                own = spec["template"]["metadata"]["labels"]
                if not is_selected(spec["selector"]["matchLabels"], own):
                    yield f"{name}: does not select its own pods"
            case "Service" | "PodDisruptionBudget" | "NetworkPolicy":
                selector = spec.get("selector", spec.get("podSelector", {}))
                labels = selector.get("matchLabels", {}) if manifest["kind"] != "Service" else selector
                if not labels or not any(is_selected(labels, pod) for pod in pods):
                    yield f"{name}: selects no pod"
            case "FleetAutoscaler":
                if (spec["fleetName"], spec["policy"]["counter"]["key"]) not in counters:
                    yield f"{name}: there is no such fleet with such a counter"
            case "GameServerAllocation":
                for selector in spec["selectors"]:
                    if ("Fleet", selector.get("matchLabels", {}).get("agones.dev/fleet")) not in names:
                        yield f"{name}: there is no such fleet"
            case "RoleBinding":
                wanted = [("Role", manifest["roleRef"]["name"])]
                wanted += [(subject["kind"], subject["name"]) for subject in manifest["subjects"]]
                yield from (f"{name}: there is no {one}" for one in wanted if one not in names)


def labels_of_pods(manifest):
    match manifest["kind"]:
        case "Deployment":
            return manifest["spec"]["template"]["metadata"]["labels"]
        case "Fleet":
            return manifest["spec"]["template"]["spec"]["template"].get("metadata", {}).get("labels")
    return None


def is_selected(wanted, labels):
    return wanted.items() <= labels.items()


def problems(manifests):
    """Everything that is wrong with these manifests together."""
    found = [f"{manifest['kind']}: {problem}" for manifest in manifests for problem in of_schema(manifest)]
    return found or list(of_references(manifests))


def read(paths):
    return [manifest for path in paths for manifest in yaml.safe_load_all(path.read_text()) if manifest]


if __name__ == "__main__":
    manifests = read(map(Path, sys.argv[1:]))
    found = problems(manifests)
    print("\n".join(found) or f"{len(manifests)} manifests are in order for Kubernetes {KUBERNETES}")
    sys.exit(bool(found) or not manifests)
