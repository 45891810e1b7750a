#!/usr/bin/env python3
"""The Kubernetes manifests of docs/clusters.md and docs/model_parallel.md: valid by the published schemas, and their pods find each other.

The package kubernetes-validate (22 MB) has the schemas, so that no cluster and no network is needed.
"""
import os
import re
import subprocess
import sys
from packages import PROGRAMS, ROOT, check, finish_tests, need_packages

need_packages(kubernetes_validate="kubernetes-validate>=1.31")

import kubernetes_validate
import yaml

RESOLVE = PROGRAMS / "interop_resolve"
PAGE = "\n".join((ROOT / f"docs/{page}.md").read_text() for page in ("clusters", "model_parallel"))
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)
# (name, key) of each Secret that the page creates.
SECRETS = re.findall(r"^kubectl create secret generic (\S+) --from-literal=(\w+)=", PAGE, re.M)
VERSIONS = ["1.28", kubernetes_validate.latest_version()]


def complaint(document, version):
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    return None


def pods(workload):
    """Name and fields of each pod, as its controller creates them."""
    name, spec = workload["metadata"]["name"], workload["spec"]
    is_job = workload["kind"] == "Job"
    for index in range(spec["completions"] if is_job else spec["replicas"]):
        fields = {"metadata.name": f"{name}-{index}"}
        if is_job:
            fields["metadata.annotations['batch.kubernetes.io/job-completion-index']"] = str(index)
        else:
            fields["metadata.labels['apps.kubernetes.io/pod-index']"] = str(index)
        yield f"{name}-{index}", fields


def environment(container, pod, fields, documents):
    """The environment that the kubelet sets in the container: references may use variables before them."""
    maps = {d["metadata"]["name"]: d["data"] for d in documents if d["kind"] == "ConfigMap"}
    variables = {"HOSTNAME": pod}
    index = fields.get("metadata.annotations['batch.kubernetes.io/job-completion-index']")
    if index is not None:
        variables["JOB_COMPLETION_INDEX"] = index
    for entry in container["env"]:
        source = entry.get("valueFrom", {})
        if "fieldRef" in source:
            variables[entry["name"]] = fields[source["fieldRef"]["fieldPath"]]
        elif "configMapKeyRef" in source:
            variables[entry["name"]] = maps[source["configMapKeyRef"]["name"]][source["configMapKeyRef"]["key"]]
        elif "secretKeyRef" in source:
            reference = source["secretKeyRef"]
            check((reference["name"], reference["key"]) in SECRETS, f"{pod}: the page makes the Secret {reference['name']}")
            variables[entry["name"]] = "0123456789abcdef" * 2
        else:
            look_up = lambda match: variables.get(match[1], match[0])
            variables[entry["name"]] = re.sub(r"\$\((\w+)\)", look_up, entry["value"])
    return variables


def test(number, block):
    documents = list(yaml.safe_load_all(block))
    for document in documents:
        for version in VERSIONS:
            why = complaint(document, version)
            check(why is None, f"block {number}, {document['kind']} {document['metadata']['name']}, Kubernetes {version}", why)

    service = next(d for d in documents if d["kind"] == "Service")
    check(service["spec"]["clusterIP"] == "None", f"block {number}: the Service is headless")
    found = {}
    for workload in [d for d in documents if "template" in d.get("spec", {})]:
        spec, template = workload["spec"], workload["spec"]["template"]
        labels = template.get("metadata", {}).get("labels", {})
        if workload["kind"] == "Job":
            check(
                spec["completions"] == spec["parallelism"] and spec["completionMode"] == "Indexed",
                "all pods of the Job run at once",
            )
            labels = labels | {"job-name": workload["metadata"]["name"]}
            subdomain = template["spec"]["subdomain"]
        else:
            selector = spec["selector"]["matchLabels"]
            check(selector.items() <= labels.items(), "the StatefulSet selects its own pods")
            # Two controllers must not claim each other's pods.
            others = [d for d in documents if d is not workload and "template" in d.get("spec", {})]
            of_others = [d["spec"]["template"].get("metadata", {}).get("labels", {}) for d in others]
            check(not any(selector.items() <= other.items() for other in of_others), "and no others")
            subdomain = spec["serviceName"]
        check(subdomain == service["metadata"]["name"], f"{workload['metadata']['name']}: names come from the Service")
        check(
            service["spec"]["selector"].items() <= labels.items(), f"{workload['metadata']['name']}: the Service knows its pods"
        )
        (container,) = template["spec"]["containers"]
        port = container["ports"][0]["containerPort"]
        for pod, fields in pods(workload):
            variables = environment(container, pod, fields, documents)
            run = subprocess.run([RESOLVE, "any_cluster"], env=os.environ | variables, capture_output=True, text=True)
            check(run.returncode == 0, f"{pod} finds its cluster", run.stderr)
            found[f"{pod}.{subdomain}:{port}"] = dict(line.split(" ", 1) for line in run.stdout.splitlines())

    check(len({f["members"] for f in found.values()}) == 1, f"block {number}: all pods have the same cluster")
    check(
        len({f["coordinator"] for f in found.values()}) == len({f["run_id"] for f in found.values()}) == 1,
        "and coordinator and run",
    )
    members = {}
    for part in next(iter(found.values()))["members"].split(", "):
        role, *addresses = part.split(" ")
        members |= {address: f"{role} {index}" for index, address in enumerate(addresses)}
    check(members == {address: f["task"] for address, f in found.items()}, "each listens at its own address")


def damaged():
    """Checks that the schemas detect mistakes."""
    service, job = yaml.safe_load_all(BLOCKS[0])
    service["spec"]["clusterIp"] = service["spec"].pop("clusterIP")
    check(complaint(service, VERSIONS[0]), "a misspelt field is refused")
    job["spec"]["completions"] = "four"
    check(complaint(job, VERSIONS[0]), "so is a text in place of a number")


for number, block in enumerate(BLOCKS, 1):
    test(number, block)
damaged()
sys.exit(finish_tests())
