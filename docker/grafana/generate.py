"""Writes `dashboards/*.json`: run `python docker/grafana/generate.py` after a change here; a test compares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from panels import Panel, Row, dashboard

_FOLDER = Path(__file__).resolve().parent / "dashboards"
_R = "[$__rate_interval]"


def _quantiles(metric: str, by: str = "") -> list[tuple[str, str]]:
    """Queries for the median, 95th and 99th percentile of a histogram, for each value of a label where one is named."""
    group, legend = (f"le, {by}", f" {{{{{by}}}}}") if by else ("le", "")
    return [
        (f"histogram_quantile({q}, sum by ({group}) (rate({metric}_bucket{_R})))", f"p{round(q * 100)}{legend}")
        for q in (0.5, 0.95, 0.99)
    ]


def _rate(counter: str, by: str = "") -> tuple[str, str]:
    """A counter's rate, for each value of a label where one is named."""
    clause, legend = (
        (f" by ({by})", " ".join(f"{{{{{label.strip()}}}}}" for label in by.split(","))) if by else ("", "")
    )
    return f"sum{clause} (rate({counter}{_R}))", legend


def _mean(metric: str) -> str:
    """The mean of a histogram's observations."""
    return f"sum(rate({metric}_sum{_R})) / sum(rate({metric}_count{_R}))"


def _pairs(selector: str) -> str:
    return f"sum by (sample, predicted) (rate(lean_reward_evaluator_pairs_total{{{selector}}}{_R}))"


OVERVIEW = dashboard(
    "lean-reward-overview",
    "lean-reward: throughput and bottleneck",
    "Start here. The first row says whether all is well, the second which part is full.",
    [
        Row(
            "Is all well?",
            [
                Panel(
                    "Warm Lean engines",
                    [("lean_reward:engines:ready", "engines")],
                    kind="stat",
                    width=4,
                    height=4,
                    limits=(1, 2),
                    rising=False,
                ),
                Panel(
                    "Queue reachable",
                    [("lean_reward:queue:reachable", "1 is yes")],
                    kind="stat",
                    width=4,
                    height=4,
                    limits=(0.5, 1),
                    rising=False,
                ),
                Panel(
                    "No verdict by our fault",
                    [("lean_reward:infrastructure:share10m", "of candidates")],
                    unit="percentunit",
                    kind="stat",
                    width=4,
                    height=4,
                    limits=(0.001, 0.01),
                ),
                Panel(
                    "Nobody decided",
                    [("lean_reward:unknown:share10m", "of candidates")],
                    unit="percentunit",
                    kind="stat",
                    width=4,
                    height=4,
                    limits=(0.05, 0.25),
                ),
                Panel(
                    "Refused with 429",
                    [("lean_reward:refused:rate5m", "a second")],
                    unit="reqps",
                    kind="stat",
                    width=4,
                    height=4,
                    limits=(0.01, 0.1),
                ),
                Panel(
                    "Batches that fail",
                    [("lean_reward:batches_failed:share10m", "of batches")],
                    unit="percentunit",
                    kind="stat",
                    width=4,
                    height=4,
                    limits=(0.001, 0.02),
                ),
            ],
        ),
        Row(
            "Where is the bottleneck?",
            [
                Panel(
                    "How full each part is",
                    [
                        ("lean_reward:engines:busy_share", "Lean engines busy"),
                        ("lean_reward:engines:down_share", "Lean engines down"),
                        ("lean_reward:gateway_cpu:max5m", "busiest gateway's core"),
                    ],
                    unit="percentunit",
                    kind="bargauge",
                    limits=(0.75, 0.95),
                    top=1,
                    about="Engines busy, queue growing: add workers. A gateway at a whole core: add gateways. Neither,"
                    " and still growing: workers that cannot claim (Redis, network), or engines that are down.",
                ),
                Panel(
                    "How long the oldest check has waited",
                    [("lean_reward:queue:oldest_age_seconds", "oldest")],
                    unit="s",
                    about="Workers scale by this. Compare it with the deadline of the batches.",
                ),
                Panel(
                    "Jobs in the queue",
                    [
                        ("lean_reward:queue:depth", "waiting"),
                        ('max(lean_reward_queue_running{job="lean-reward-gateway"})', "running"),
                    ],
                ),
                Panel(
                    "Rewards by who decided",
                    [("sum by (source) (lean_reward:rewards:rate5m)", "{{source}}")],
                    unit="ops",
                    stacked=True,
                ),
                Panel(
                    "Checks by Lean's answer", [_rate("lean_reward_checks_total", "status")], unit="ops", stacked=True
                ),
                Panel(
                    "Lean share of batches",
                    [("lean_reward:lean_share:mean30m", "mean of 30 minutes")],
                    unit="percentunit",
                    top=1,
                ),
            ],
        ),
        Row(
            "In flight",
            [
                Panel("Batches in flight", [("sum(lean_reward_batches_in_flight)", "batches")]),
                Panel("Candidates in flight", [("sum(lean_reward_candidates_in_flight)", "candidates")]),
                Panel(
                    "Memory of the services",
                    [('max by (job) (process_resident_memory_bytes{job=~"lean-reward-.+"})', "largest {{job}}")],
                    unit="bytes",
                ),
            ],
        ),
    ],
)

BATCHES = dashboard(
    "lean-reward-batches",
    "lean-reward: a batch's life",
    "From receipt to answer: admission, cutoff, merge, and what the rewards rest on.",
    [
        Row(
            "Time",
            [
                Panel("Receipt to answer", _quantiles("lean_reward_batch_seconds"), unit="s"),
                Panel("Receipt to cutoff", _quantiles("lean_reward_cutoff_seconds"), unit="s"),
                Panel(
                    "Cutoff to answer, mean",
                    [("lean_reward:answer_delay_seconds:mean10m", "delay")],
                    unit="s",
                    about="Merging and writing the answer. It should stay below a quarter of a second.",
                ),
                Panel("What ended the batches", [_rate("lean_reward_cutoff_seconds_count", "reason")], stacked=True),
                Panel("How batches end", [_rate("lean_reward_batches_total", "outcome")], unit="ops", stacked=True),
                Panel("Batches by mode", [_rate("lean_reward_batches_total", "mode")], unit="ops", stacked=True),
            ],
        ),
        Row(
            "Rewards",
            [
                Panel("Rewards by source", [_rate("lean_reward_rewards_total", "source")], unit="ops", stacked=True),
                Panel("Rewards by verdict", [_rate("lean_reward_rewards_total", "verdict")], unit="ops", stacked=True),
                Panel(
                    "What became of their Lean checks",
                    [_rate("lean_reward_rewards_total", "lean_status")],
                    unit="ops",
                    stacked=True,
                ),
                Panel(
                    "Positive rewards that Lean did not prove",
                    [("lean_reward:unproven_positives:share30m", "of positive rewards")],
                    unit="percentunit",
                ),
                Panel("Why nobody decided", [_rate("lean_reward_unknowns_total", "reason")], unit="ops", stacked=True),
                Panel(
                    "Lean share",
                    [(f"sum by (le) (increase(lean_reward_lean_share_bucket{_R}))", "{{le}}")],
                    kind="heatmap",
                ),
            ],
        ),
        Row(
            "Work saved, and callers",
            [
                Panel(
                    "Checks that did not have to run",
                    [
                        (f"sum(rate(lean_reward_cached_total{_R}))", "cached"),
                        (f"sum(rate(lean_reward_duplicates_total{_R}))", "the same program in the batch"),
                    ],
                    unit="ops",
                ),
                Panel("Problems by code", [_rate("lean_reward_problems_total", "code")], unit="ops", stacked=True),
                Panel("Callers that left before the answer", [_rate("lean_reward_disconnects_total")], unit="ops"),
                Panel(
                    "Joined single-sample calls",
                    [_rate("lean_reward_compat_joined_total"), *_quantiles("lean_reward_compat_batch_size")[:1]],
                    about="Calls of other programs' protocols that shared a sample, and the samples of a joined batch.",
                ),
            ],
        ),
    ],
)

WORKERS = dashboard(
    "lean-reward-workers",
    "lean-reward: Lean workers",
    "Engines, checks, and the jobs in the workers' hands.",
    [
        Row(
            "Engines",
            [
                Panel("Engines by state", [("sum by (state) (lean_reward_slots)", "{{state}}")], stacked=True),
                Panel("Thrown away, by cause", [_rate("lean_reward_engine_restarts_total", "cause")], unit="ops"),
                Panel("Started", [_rate("lean_reward_engine_warm_ups_total", "result")], unit="ops"),
                Panel(
                    "Memory of engines",
                    [
                        ("max(lean_reward_engine_rss_bytes)", "largest"),
                        ("avg(lean_reward_engine_rss_bytes)", "mean"),
                    ],
                    unit="bytes",
                ),
                Panel("Sandbox", [("sum by (tier) (lean_reward_sandbox)", "{{tier}}")], stacked=True),
                Panel(
                    "Leans that differ",
                    [("lean_reward:identities:max", "identities")],
                    about="More than one only while a toolchain rolls over: the verdict cache is not read then.",
                ),
            ],
        ),
        Row(
            "Checks",
            [
                Panel("By Lean's reason", [_rate("lean_reward_checks_total", "reason")], unit="ops", stacked=True),
                Panel(
                    "Time of a check",
                    [*_quantiles("lean_reward_check_seconds"), ("lean_reward:check_seconds:mean15m", "mean")],
                    unit="s",
                    about="The mean is what docs/operations.md sizes workers by.",
                ),
                Panel(
                    "Time of a check, p95 by status", _quantiles("lean_reward_check_seconds", "status")[1:2], unit="s"
                ),
                Panel("Run once more, by failure", [_rate("lean_reward_checks_retried_total", "cause")], unit="ops"),
                Panel("Cancelled", [_rate("lean_reward_checks_cancelled_total")], unit="ops"),
                Panel("Cancellation until clean", _quantiles("lean_reward_cancel_seconds"), unit="s"),
            ],
        ),
        Row(
            "Jobs in the workers' hands",
            [
                Panel("Claimed", [_rate("lean_reward_claims_total")], unit="ops"),
                Panel("Given back, by cause", [_rate("lean_reward_claims_released_total", "cause")], unit="ops"),
                Panel("Leases that expired", [_rate("lean_reward_leases_expired_total", "fate")], unit="ops"),
                Panel(
                    "Lost or late",
                    [
                        (f"sum(rate(lean_reward_claims_lost_total{_R}))", "lease lost or unwanted"),
                        (f"sum(rate(lean_reward_results_stale_total{_R}))", "result too late"),
                    ],
                    unit="ops",
                ),
                Panel("Results that wait for the queue", [("sum(lean_reward_results_unsent)", "results")]),
                Panel("Calls that the queue did not answer", [_rate("lean_reward_worker_queue_errors_total", "call")]),
            ],
        ),
    ],
)

EVALUATOR = dashboard(
    "lean-reward-evaluator",
    "lean-reward: evaluator, quality and drift",
    "Can the evaluator predict, how fast, and how far can its predictions be trusted.",
    [
        Row(
            "Serving",
            [
                Panel(
                    "Evaluators ready",
                    [("max(lean_reward_evaluators_ready)", "ready")],
                    kind="stat",
                    width=4,
                    height=4,
                    limits=(0.5, 1),
                    rising=False,
                ),
                Panel(
                    "A demonstration",
                    [("lean_reward:evaluator_demonstration:max", "1 is yes")],
                    kind="stat",
                    width=4,
                    height=4,
                    limits=(0.5, 1),
                ),
                Panel(
                    "Another Lean than the workers'",
                    [("lean_reward:evaluator_mismatch:max", "1 is yes")],
                    kind="stat",
                    width=4,
                    height=4,
                    limits=(0.5, 1),
                ),
                Panel(
                    "Engines up",
                    [("sum by (stage) (lean_reward_evaluator_engines_up)", "{{stage}}")],
                    kind="stat",
                    width=6,
                    height=4,
                    limits=(0.5, 1),
                    rising=False,
                ),
                Panel(
                    "Programs in flight",
                    [("sum(lean_reward_evaluations_in_flight)", "programs")],
                    kind="stat",
                    width=6,
                    height=4,
                ),
                Panel("Predictions", [_rate("lean_reward_evaluations_total", "verdict")], unit="ops", stacked=True),
                Panel("Why", [_rate("lean_reward_evaluations_total", "reason")], unit="ops", stacked=True),
                Panel("Time of a request", _quantiles("lean_reward_evaluation_seconds"), unit="s"),
                Panel(
                    "Faults as the gateway sees them",
                    [
                        (f"sum(rate(lean_reward_evaluator_failures_total{_R}))", "requests failed"),
                        (f"sum(rate(lean_reward_evaluator_second_tries_total{_R}))", "programs sent again"),
                    ],
                    unit="ops",
                ),
                Panel(
                    "Checks moved forward by predictions", [_rate("lean_reward_priorities_raised_total")], unit="ops"
                ),
                Panel("Changing over", _quantiles("lean_reward_evaluator_change_over_seconds"), unit="s"),
            ],
        ),
        Row(
            "Quality and drift (against Lean)",
            [
                Panel(
                    "Pairs by outcome",
                    [
                        (
                            f"sum by (predicted, lean) (rate(lean_reward_evaluator_pairs_total{_R}))",
                            "said {{predicted}}, Lean {{lean}}",
                        )
                    ],
                    unit="ops",
                    stacked=True,
                ),
                Panel(
                    "Lean found valid, of each prediction",
                    [
                        (_pairs('lean="valid"') + " / " + _pairs(""), "said {{predicted}} ({{sample}})"),
                    ],
                    unit="percentunit",
                    top=1,
                    about="For `valid` the precision, for `invalid` what is missed. Only `audit` is a fair sample.",
                ),
                Panel(
                    "False-positive rate in the audit",
                    [("lean_reward_evaluator_false_positive_rate", "{{model}} {{bound}}")],
                    unit="percentunit",
                    top=1,
                    about="With its Wilson interval; the guard acts when the lower bound passes its limit.",
                ),
                Panel(
                    "Distrusted",
                    [("max by (model) (lean_reward_evaluator_distrusted)", "{{model}}")],
                    about="1 while the audit shows too many false positives.",
                ),
                Panel(
                    "Audit",
                    [
                        (f"sum(rate(lean_reward_audited_total{_R}))", "went on after the cutoff"),
                        (f"sum(rate(lean_reward_audits_given_up_total{_R}))", "given up"),
                    ],
                    unit="ops",
                ),
            ],
        ),
    ],
)

PROCESS = dashboard(
    "lean-reward-process",
    "lean-reward: process rewards",
    "Penalties, stages and votes of agent trajectories.",
    [
        Row(
            "Penalties (gamma)",
            [
                Panel("Steps judged", [_rate("lean_reward_steps_judged_total")], unit="ops"),
                Panel("Penalties by rule", [_rate("lean_reward_penalties_total", "rule")], unit="ops", stacked=True),
                Panel(
                    "Part of the steps that each rule penalises",
                    [("lean_reward:penalties:share30m", "{{rule}}")],
                    unit="percentunit",
                ),
                Panel("Time of a request", _quantiles("lean_reward_penalty_seconds"), unit="s"),
            ],
        ),
        Row(
            "Groups of rollouts",
            [
                Panel("Rollouts scored", [_rate("lean_reward_rollouts_total")], unit="ops"),
                Panel("Receipt to answer of a group", _quantiles("lean_reward_group_seconds"), unit="s"),
                Panel("What trainers were warned of", [_rate("lean_reward_rollout_flags_total", "flag")], unit="ops"),
            ],
        ),
        Row(
            "Stages and the judge (beta)",
            [
                Panel("Stages by beta", [_rate("lean_reward_stages_total", "beta")], unit="ops", stacked=True),
                Panel("Stages by who decided", [_rate("lean_reward_stages_total", "source")], unit="ops", stacked=True),
                Panel(
                    "Part of a group's stages that nobody judged, mean",
                    [
                        (_mean("lean_reward_unannotated_share"), "of stages"),
                    ],
                    unit="percentunit",
                    top=1,
                ),
                Panel("Judge's calls", [_rate("lean_reward_model_calls_total", "outcome")], unit="ops", stacked=True),
                Panel(
                    "Judge's calls that fail or make no sense",
                    [("lean_reward:judge_failed:share15m", "of calls")],
                    unit="percentunit",
                    top=1,
                ),
                Panel("Time of a call", _quantiles("lean_reward_model_seconds", "prompt")[1:2], unit="s"),
                Panel(
                    "Votes of +1 that did not count",
                    [_rate("lean_reward_vote_downgrades_total", "reason")],
                    unit="ops",
                    stacked=True,
                    about="Quotes that are nowhere, come from later, or echo the agent: a lenient or a lied-to judge.",
                ),
            ],
        ),
    ],
)

DASHBOARDS: dict[str, dict[str, Any]] = {
    "overview": OVERVIEW,
    "batches": BATCHES,
    "workers": WORKERS,
    "evaluator": EVALUATOR,
    "process": PROCESS,
}


def text(name: str) -> str:
    """A dashboard as its file holds it."""
    return json.dumps(DASHBOARDS[name], indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in DASHBOARDS:
        (_FOLDER / f"{name}.json").write_text(text(name), encoding="utf-8")
