#!/usr/bin/env python3
"""Records recorded/more_metrics.safetensors: the metrics that generate.py does not have.

    python3 -m venv venv && venv/bin/pip install keras==3.15.1 jax==0.10.2 safetensors==0.8.0 numpy==2.4.6
    venv/bin/python generate_metrics.py     # fails if Keras and the NumPy below disagree

Keras runs on JAX in float64, and in float32 where that is the only type of a metric's sums.
"""

import json
import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"

import keras
import numpy as np
from safetensors.numpy import save_file

keras.config.set_floatx("float64")
keras.src.backend.common.dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"

K, SAMPLES = keras.metrics, 40
random = np.random.default_rng(11)


def short(low, high, shape):
    """Random numbers that are exact in float32."""
    return random.uniform(low, high, shape).astype(np.float32).astype(np.float64)


# --------------------------------------------------------------------------------------------------------- the same in NumPy
def quotient(a, b):
    return a / b if b else 0.0


def confused(y, p, threshold=None, thresholds=None, top_k=None, class_id=None):
    """True positives, false positives, true negatives, false negatives."""
    limit = thresholds if thresholds is not None else threshold
    yes = p > (0.5 if limit is None else limit)
    if top_k is not None:
        largest = np.argsort(-np.where(np.isnan(p), np.inf, p), axis=-1, kind="stable")[:, :top_k]
        inside = np.zeros_like(yes)
        np.put_along_axis(inside, largest, True, -1)
        yes = inside & (p > (-np.inf if limit is None else limit))
    if class_id is not None:
        y, yes = y[:, class_id], yes[:, class_id]
    is_one = y != 0
    return (yes & is_one).sum(), (yes & ~is_one).sum(), (~yes & ~is_one).sum(), (~yes & is_one).sum()


def count(which):
    return lambda y, p, **settings: confused(y, p, **settings)[which]


def share(other):
    def of(y, p, **settings):
        counts = confused(y, p, **settings)
        return quotient(counts[0], counts[0] + counts[other])

    return of


def auc(y, p, num_thresholds=200, curve="ROC", from_logits=False):
    y, p = y.ravel(), np.nan_to_num(p.ravel(), nan=-1e300)
    p = 1 / (1 + np.exp(-p)) if from_logits else p
    limits = np.array([-np.inf, *(np.arange(1, num_thresholds - 1) / (num_thresholds - 1)), np.inf])
    tp = np.array([((p > limit) & (y > 0)).sum() for limit in limits], float)
    fp = np.array([((p > limit) & (y == 0)).sum() for limit in limits], float)
    ones, zeros = (y > 0).sum(), (y == 0).sum()
    if curve == "ROC":
        return -np.trapezoid(tp / ones, fp / zeros)
    area = 0.0
    for i in range(num_thresholds - 1):
        all_of, all_next = tp[i] + fp[i], tp[i + 1] + fp[i + 1]
        slope = quotient(tp[i] - tp[i + 1], all_of - all_next)
        ratio = all_of / all_next if all_of > 0 and all_next > 0 else 1.0
        area += slope * (tp[i] - tp[i + 1] + (tp[i + 1] - slope * all_next) * np.log(ratio)) / ones
    return area


def f1_score(y, p, average=None, threshold=None):
    yes = (p >= p.max(-1, keepdims=True)) & (np.abs(p) > 1e-9) if threshold is None else p > threshold
    tp, fp, fn = (yes & (y > 0)).sum(0), (yes & (y == 0)).sum(0), (~yes & (y > 0)).sum(0)
    if average == "micro":
        tp, fp, fn = tp.sum(), fp.sum(), fn.sum()
    scores = 2 * tp / np.maximum(2 * tp + fp + fn, 1)
    if average == "weighted":
        return (scores * (tp + fn)).sum() / (tp + fn).sum()
    return scores if average is None else scores.mean()


def r2_score(y, p):
    return (1 - ((y - p) ** 2).sum(0) / ((y - y.mean(0)) ** 2).sum(0)).mean()


def confusion_matrix(y, p):
    classes = y.shape[-1]
    return np.histogram2d(y.argmax(-1), p.argmax(-1), bins=classes, range=[[-0.5, classes - 0.5]] * 2)[0]


class ConfusionMatrix(K.Metric):
    """Keras has no such metric: sums of outer products."""

    def __init__(self):
        super().__init__()
        self.matrix = 0

    def update_state(self, y, p):
        one = lambda x: (x == x.max(-1, keepdims=True)).astype(float)
        self.matrix = self.matrix + one(y).T @ one(p)

    def result(self):
        return self.matrix


# ----------------------------------------------------------------------------------------------------------------- recording
def likely(shape):
    """Labels, and predictions that are correlated with them."""
    y = random.integers(0, 2, shape).astype(np.float64)
    return y, np.clip(y * 0.25 + short(0, 0.75, shape), 0, 1).astype(np.float32).astype(np.float64)


def classes(number):
    y = np.eye(number)[random.integers(0, number, SAMPLES)]
    return y, (y * 0.25 + short(0, 0.75, y.shape)).astype(np.float32).astype(np.float64)


bits, five = likely((SAMPLES, 3)), classes(5)
amounts = short(-3, 3, (SAMPLES, 4))
amounts = amounts, (amounts + short(-1, 1, amounts.shape)).astype(np.float32).astype(np.float64)
logits = bits[0], (8 * bits[1] - 4).astype(np.float32).astype(np.float64)
# Rows with one element that is not finite, and rows of one element.
hostile = five[0][::2].copy(), five[1][::2].copy()
for i, row in enumerate(hostile[1]):
    row[i % 5 if i % 4 else slice(None)] = (0.5, np.nan, np.inf, -np.inf)[i % 4]

cases = []  # (name, Keras, the same in NumPy, data, settings)
for name, metric, second in (
    ("true_positives", K.TruePositives, count(0)),
    ("false_positives", K.FalsePositives, count(1)),
    ("true_negatives", K.TrueNegatives, count(2)),
    ("false_negatives", K.FalseNegatives, count(3)),
):
    cases += [(name, metric, second, bits, {}), (f"{name}_threshold", metric, second, bits, dict(thresholds=0.375))]
for name, metric, second in (("precision", K.Precision, share(1)), ("recall", K.Recall, share(3))):
    cases += [
        (name, metric, second, bits, {}),
        (f"{name}_threshold", metric, second, bits, dict(thresholds=0.75)),
        (f"{name}_top_k", metric, second, five, dict(top_k=2)),
        (f"{name}_class_id", metric, second, five, dict(class_id=3)),
        (f"{name}_all", metric, second, five, dict(top_k=2, class_id=1, thresholds=0.375)),
    ]
cases += [
    ("auc", K.AUC, auc, bits, {}),
    ("auc_5", K.AUC, auc, bits, dict(num_thresholds=5)),
    ("auc_pr", K.AUC, auc, bits, dict(curve="PR")),
    ("auc_pr_5", K.AUC, auc, five, dict(curve="PR", num_thresholds=5)),
    ("auc_from_logits", K.AUC, auc, logits, dict(from_logits=True)),
    ("f1_score", K.F1Score, f1_score, five, {}),
    ("f1_score_threshold", K.F1Score, f1_score, bits, dict(threshold=0.5, average="macro")),
    *((f"f1_score_{a}", K.F1Score, f1_score, five, dict(average=a)) for a in ("micro", "macro", "weighted")),
    ("root_mean_squared_error", K.RootMeanSquaredError, lambda y, p: np.sqrt(((y - p) ** 2).mean()), amounts, {}),
    ("r2_score", K.R2Score, r2_score, amounts, {}),
    ("cosine_similarity", K.CosineSimilarity, None, amounts, {}),
    ("confusion_matrix", ConfusionMatrix, confusion_matrix, five, {}),
    ("hostile_true_positives", K.TruePositives, count(0), hostile, {}),
    ("hostile_false_positives", K.FalsePositives, count(1), hostile, {}),
    ("hostile_true_negatives", K.TrueNegatives, count(2), hostile, dict(thresholds=0.375)),
    ("hostile_precision_top_k", K.Precision, share(1), hostile, dict(top_k=2)),
    ("hostile_recall_top_k", K.Recall, share(3), hostile, dict(top_k=3)),
    ("hostile_auc", K.AUC, auc, hostile, {}),
    ("hostile_auc_pr", K.AUC, auc, hostile, dict(curve="PR")),
    ("hostile_auc_from_logits", K.AUC, auc, hostile, dict(from_logits=True)),
    ("hostile_f1_score", K.F1Score, f1_score, hostile, {}),
]


def cosine(y, p):
    return ((y * p).sum(-1) / np.linalg.norm(y, axis=-1) / np.linalg.norm(p, axis=-1)).mean()


tensors, settings_of = {}, {}
for name, kind, second, (y, p), settings in cases:
    metric = kind(**settings)
    first = len(y) * 5 // 8
    metric.update_state(y[:first], p[:first])
    metric.update_state(y[first:], p[first:])
    result = np.atleast_1d(np.asarray(metric.result(), np.float64))
    again = np.atleast_1d((second or cosine)(y, p, **settings))
    assert np.abs(result - again).max() < 1e-6, (name, result, again)  # of Keras' epsilons and float32
    assert 0 < again.max(), name
    tensors |= {f"{name}/labels": y, f"{name}/predictions": p, f"{name}/result": again.astype(np.float64)}
    settings_of[name] = settings

metadata = {"recording": json.dumps({"keras": keras.__version__, "cases": settings_of})}
path = Path(__file__).resolve().parent / "recorded" / "more_metrics.safetensors"
save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, path, metadata)
path.chmod(0o644)
print(f"{path.name}: {len(tensors)} tensors, {path.stat().st_size:,} bytes")
