#!/usr/bin/env python3
"""TensorFlow and strata read the same cluster from the same TF_CONFIG, and refuse the same mistakes."""
import json
import os
import subprocess
import sys
from packages import PROGRAMS, ROOT, check, finish_tests, need_tensorflow

need_tensorflow()

import tensorflow as tf
from tensorflow.python.distribute import multi_worker_util

RESOLVE = PROGRAMS / "interop_resolve"
ROLES = ["chief", "worker", "ps", "evaluator"]


def ours(text):
    """The cluster that strata finds; None if it refuses."""
    run = subprocess.run([RESOLVE, "tf_config"], env=os.environ | {"TF_CONFIG": text}, capture_output=True, text=True)
    if run.returncode:
        return None
    facts = dict(line.split(" ", 1) for line in run.stdout.splitlines())
    members = {}
    for part in facts["members"].split(", "):
        role, *addresses = part.split(" ")
        members[role] = addresses
    found = {"task": facts["task"], "members": members}
    if "rank" in facts:
        found |= {"rank": int(facts["rank"]), "size": int(facts["size"]), "is_chief": facts["is_chief"] == "1"}
    return found


def theirs(text):
    os.environ["TF_CONFIG"] = text
    try:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        spec, role, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
        if role is None or index is None:
            return None  # as MultiWorkerMirroredStrategy does
        is_chief = multi_worker_util.is_chief(spec, role, index)
        found = {"task": f"{role} {index}", "members": {role: spec.as_dict()[role] for role in ROLES if role in spec.jobs}}
        if role in ("chief", "worker"):
            rank = multi_worker_util.id_in_cluster(spec, role, index)
            found |= {"rank": rank, "size": multi_worker_util.worker_count(spec, role), "is_chief": is_chief}
        return found
    except (ValueError, TypeError, KeyError):
        return None
    finally:
        del os.environ["TF_CONFIG"]


def understood():
    hosts = iter(f"host{i}:{2222 + i}" for i in range(10_000))
    clusters = [
        {"worker": 1},
        {"worker": 3},
        {"chief": 1},
        {"chief": 1, "worker": 2},
        {"worker": 2, "ps": 1},
        {"chief": 1, "worker": 2, "ps": 2, "evaluator": 1},
    ]
    for counts in clusters:
        cluster = {role: [next(hosts) for _ in range(count)] for role, count in counts.items()}
        tasks = [(role, index) for role, count in counts.items() for index in range(count)]
        for role, index in [*tasks, ("evaluator", 0)]:
            text = json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})
            check(ours(text) is not None and ours(text) == theirs(text), f"{role} {index} of {counts}")
    text = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": "1"}, "environment": "cloud"}'
    check(ours(text) is not None and ours(text) == theirs(text), "an index in quotes")


def launched():
    show = ["--", "sh", "-c", 'printf "%s\\n" "$TF_CONFIG"']
    options = ["-n", "2", "--ps", "1", "--chief", "--evaluator"]
    run = subprocess.run([ROOT / "examples/launch", *options, *show], capture_output=True, text=True)
    texts = [line.partition(" | ")[2] for line in run.stdout.splitlines()]
    agree = all(ours(text) is not None and ours(text) == theirs(text) for text in texts)
    check(len(texts) == 5 and agree, "every process of examples/launch")


def refused():
    workers = '{"cluster": {"worker": ["a:1", "b:1"]}'
    for text in [
        "no JSON",
        "{'cluster': {}}",
        '{"cluster": {"worker": "a:1"}, "task": {"type": "worker", "index": 1}}',
        '{"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}}',
        '{"cluster": {"worker": ["a:1"], "evaluator": ["b:1", "c:1"]}, "task": {"type": "worker", "index": 0}}',
        workers + ', "task": {"type": "worker", "index": 2}}',
        workers + ', "task": {"type": "ps", "index": 0}}',
        workers + ', "task": {"type": "Worker", "index": 0}}',
        workers + ', "task": {"type": "worker", "index": "one"}}',
        workers + ', "task": {"type": "worker"}}',
        workers + "}",
    ]:
        check(ours(text) is None and theirs(text) is None, f"both refuse {text}")


understood()
launched()
refused()
sys.exit(finish_tests())
