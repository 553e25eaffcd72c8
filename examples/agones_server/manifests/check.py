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
BUFFER_POLICY = fields(["bufferSize", "maxReplicas"], bufferSize=BUFFER, minReplicas=whole(0), maxReplicas=whole(1))
COUNTER_POLICY = fields(
    ["key", "bufferSize", "maxCapacity"], key=TEXT, bufferSize=BUFFER, minCapacity=whole(0), maxCapacity=whole(1)
)
# With fewer places, a server is one match: what is free of a match that has begun is of use to nobody.
MANY_PLACES = 16


def kind(name, version, meta, spec):
    required = ["apiVersion", "kind", "spec"] + meta
    return fields(required, apiVersion=one_of(version), kind=one_of(name), metadata=META, spec=spec)


# Source: install/helm/agones/templates/crds of Agones 1.61.
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
            policy={
                "type": "object",
                "properties": {"type": one_of("Buffer", "Counter")},
                "required": ["type"],
                "if": {"properties": {"type": one_of("Counter")}},
                "then": fields(["counter"], type=TEXT, counter=COUNTER_POLICY),
                "else": fields(["buffer"], type=TEXT, buffer=BUFFER_POLICY),
            },
        ),
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
    services = {
        f"{manifest['metadata']['name']}:{port['port']}"
        for manifest in manifests
        if manifest["kind"] == "Service"
        for port in manifest["spec"]["ports"]
    }
    fleets = {manifest["metadata"]["name"]: manifest["spec"] for manifest in manifests if manifest["kind"] == "Fleet"}
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
                if spec["fleetName"] not in fleets:
                    yield f"{name}: there is no such fleet"
                else:
                    problem = of_policy(spec["policy"], fleets[spec["fleetName"]])
                    yield from [f"{name}: {problem}"] if problem else []
        pod = pod_of(manifest)
        yield from (f"{name}: {problem}" for problem in of_pod(pod, services)) if pod else []


def of_policy(policy, fleet):
    """Why a fleet cannot be scaled like that. Source: pkg/apis/autoscaling/v1/fleetautoscaler.go of Agones 1.61."""
    if policy["type"] == "Counter":
        counter = fleet["template"]["spec"].get("counters", {}).get(policy["counter"]["key"])
        if counter is None:
            return "there is no such counter"
        if counter["capacity"] < MANY_PLACES:
            return f"a server of {counter['capacity']} places is one match: keep free servers, by the policy Buffer"
        return None
    size, least, most = (policy["buffer"].get(key, 0) for key in ["bufferSize", "minReplicas", "maxReplicas"])
    if isinstance(size, str):
        return None if 1 <= least <= most else "it must be 1 <= minReplicas <= maxReplicas"
    is_in_order = size <= (least or size) <= most
    return None if is_in_order else "it must be bufferSize <= minReplicas <= maxReplicas"


def of_pod(pod, services):
    """Mounts of volumes that are not there, files that are not mounted, and a matchmaker that is not there."""
    volumes = {volume["name"]: files_of(volume) for volume in pod.get("volumes", [])}
    for container in pod.get("initContainers", []) + pod["containers"]:
        mounts = {mount["mountPath"]: mount["name"] for mount in container.get("volumeMounts", [])}
        yield from (f"there is no volume {name}" for name in mounts.values() if name not in volumes)
        values = {one["name"]: one.get("value", "") for one in container.get("env", [])}
        for path in [word for word in container.get("args", []) + list(values.values()) if word.startswith("/")]:
            folder, _, file = path.rpartition("/")
            files = volumes.get(mounts.get(folder), [])
            if files is not None and file not in files:
                yield f"{path} is not mounted"
        if "MATCHMAKER" in values and values["MATCHMAKER"] not in services:
            yield f"there is no service {values['MATCHMAKER']}"


def files_of(volume):
    """The names of its files. `None`: all of a secret, whatever it has."""
    parts = volume.get("projected", {}).get("sources", [volume])
    items = [part.get("secret", {}).get("items") for part in parts]
    return None if None in items else [item["path"] for part in items for item in part]


def pod_of(manifest):
    match manifest["kind"]:
        case "Deployment":
            return manifest["spec"]["template"]["spec"]
        case "Fleet":
            return manifest["spec"]["template"]["spec"]["template"]["spec"]
    return None


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
