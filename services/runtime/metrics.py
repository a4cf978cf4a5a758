"""Every Prometheus metric of the platform, one section a component (`docs/metrics.md` documents each).

Names start with `lean_reward_`; labels are bounded enumerations, never ids or text of a candidate.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

# They are a series more for each counter and histogram, which nothing here reads.
disable_created_metrics()  # type: ignore[no-untyped-call]

_CHECK_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_BATCH_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 90, 120, 300, 600, 1200)

# The sections below name their component; each is filled by the code that observes it.

# Lean worker

CHECKS = Counter("lean_reward_checks", "Checks that ended with an outcome.", ("status", "reason"))
CHECK_SECONDS = Histogram("lean_reward_check_seconds", "Time of one check.", ("status",), buckets=_CHECK_SECONDS)
CHECKS_CANCELLED = Counter("lean_reward_checks_cancelled", "Checks stopped because nobody wants them any more.")
CANCEL_SECONDS = Histogram(
    "lean_reward_cancel_seconds",
    "From a cancellation's arrival until the engine is clean again.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10),
)
CHECKS_RETRIED = Counter("lean_reward_checks_retried", "Checks run once more on a clean engine.", ("cause",))
ENGINE_RESTARTS = Counter("lean_reward_engine_restarts", "Engines thrown away and started again.", ("cause",))
ENGINE_WARM_UPS = Counter("lean_reward_engine_warm_ups", "Engines started and warmed.", ("result",))
CLAIMS = Counter("lean_reward_claims", "Jobs taken from the queue.")
CLAIMS_RELEASED = Counter(
    "lean_reward_claims_released", "Jobs given back unchecked; the attempt counts where an engine was lost.", ("cause",)
)
CLAIMS_LOST = Counter(
    "lean_reward_claims_lost", "Jobs whose lease was lost or which nobody wants, told by a heartbeat."
)
RESULTS_STALE = Counter("lean_reward_results_stale", "Results that came after the lease had gone to somebody else.")
RESULTS_UNSENT = Gauge("lean_reward_results_unsent", "Results that wait for the queue.")
QUEUE_ERRORS = Counter(
    "lean_reward_worker_queue_errors", "Calls of the worker that the queue did not answer.", ("call",)
)
SLOTS = Gauge("lean_reward_slots", "Engines of this worker by state.", ("state",))
ENGINE_RSS = Gauge("lean_reward_engine_rss_bytes", "Resident memory of an engine's processes.", ("slot",))

# Gateway

BATCHES = Counter("lean_reward_batches", "Batches that ended.", ("mode", "outcome"))
BATCH_SECONDS = Histogram(
    "lean_reward_batch_seconds", "From receipt of a batch to its answer.", ("mode",), buckets=_BATCH_SECONDS
)
CUTOFF_SECONDS = Histogram(
    "lean_reward_cutoff_seconds", "From receipt of a batch to its cutoff.", ("reason",), buckets=_BATCH_SECONDS
)
LEAN_SHARE = Histogram(
    "lean_reward_lean_share",
    "Part of a batch that Lean decided by the cutoff.",
    buckets=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0),
)
REWARDS = Counter("lean_reward_rewards", "Rewards given.", ("source", "verdict", "lean_status"))
UNKNOWNS = Counter("lean_reward_unknowns", "Candidates that nobody decided.", ("reason",))
CACHED = Counter("lean_reward_cached", "Checks answered by the verdict cache.")
DUPLICATES = Counter("lean_reward_duplicates", "Candidates joined to an identical one of their batch.")
BATCHES_IN_FLIGHT = Gauge("lean_reward_batches_in_flight", "Batches that this gateway runs.")
CANDIDATES_IN_FLIGHT = Gauge("lean_reward_candidates_in_flight", "Candidates of these batches.")
KEY_CANDIDATES = Counter(
    "lean_reward_key_candidates", "Candidates of batches that were let in, by the name of the API key.", ("key",)
)
QUOTA_REFUSALS = Counter(
    "lean_reward_quota_refusals", "Requests refused because a quota of their key was used up.", ("quota",)
)
RECORDED = Counter("lean_reward_recorded", "Candidates that the recorder wrote.")
RECORDINGS_LOST = Counter("lean_reward_recordings_lost", "Candidates that the recorder could not keep.", ("cause",))
PROBLEMS = Counter("lean_reward_problems", "Requests answered with a problem document.", ("code",))
DISCONNECTS = Counter("lean_reward_disconnects", "Requests whose client left before the answer.")
CONNECTIONS_DROPPED = Counter(
    "lean_reward_connections_dropped", "Connections that the gateway closed on a client.", ("cause",)
)
QUEUE_DEPTH = Gauge("lean_reward_queue_depth", "Jobs that wait.")
QUEUE_OLDEST_AGE = Gauge("lean_reward_queue_oldest_age_seconds", "How long the oldest of them has waited.")
QUEUE_RUNNING = Gauge("lean_reward_queue_running", "Jobs that workers hold.")
LEAN_ENGINES = Gauge("lean_reward_lean_engines", "Warm engines of all announced workers.")
DEGRADED = Counter("lean_reward_degraded", "Batches that went on without a part.", ("part",))
PRIORITIES_RAISED = Counter(
    "lean_reward_priorities_raised", "Waiting checks that were moved forward when predictions came."
)
EVALUATORS_READY = Gauge("lean_reward_evaluators_ready", "Evaluators that could predict a moment ago.")
EVALUATOR_FAILURES = Counter(
    "lean_reward_evaluator_failures", "Requests that an evaluator did not answer or broke off, seen by the gateway."
)
EVALUATOR_SECOND_TRIES = Counter(
    "lean_reward_evaluator_second_tries", "Programs sent to an evaluator once more after that."
)
EVALUATOR_TOOLCHAIN_MISMATCH = Gauge(
    "lean_reward_evaluator_toolchain_mismatch", "1 while a model was trained for another Lean than the workers run."
)
EVALUATOR_PAIRS = Counter(
    "lean_reward_evaluator_pairs",
    "Programs on which the evaluator and Lean both gave a verdict.",
    ("model", "problems", "sample", "predicted", "lean"),
)
EVALUATOR_FALSE_POSITIVES = Gauge(
    "lean_reward_evaluator_false_positive_rate",
    "False-positive rate in the audit sample of the window, with its Wilson interval.",
    ("model", "bound"),
)
EVALUATOR_DISTRUSTED = Gauge(
    "lean_reward_evaluator_distrusted", "1 while the audit shows too many false positives.", ("model",)
)
AUDITED = Counter("lean_reward_audited", "Checks that went on after their cutoff to label a prediction.")
AUDITS_GIVEN_UP = Counter("lean_reward_audits_given_up", "Of these, checks that nobody got round to.")

# Evaluator

EVALUATIONS = Counter("lean_reward_evaluations", "Programs that the evaluator predicted.", ("verdict", "reason"))
EVALUATION_SECONDS = Histogram(
    "lean_reward_evaluation_seconds", "Time of one request for predictions.", ("method",), buckets=_BATCH_SECONDS
)
EVALUATIONS_IN_FLIGHT = Gauge(
    "lean_reward_evaluations_in_flight", "Programs that the evaluator was sent and still has."
)
EVALUATOR_FAULTS = Counter("lean_reward_evaluator_faults", "Programs on which an engine failed.", ("stage",))
EVALUATOR_RETRIES = Counter("lean_reward_evaluator_retries", "Programs sent to another pair after that.", ("stage",))
EVALUATOR_RESTARTS = Counter("lean_reward_evaluator_restarts", "Engines found dead and started again.", ("stage",))
EVALUATOR_ENGINES_UP = Gauge("lean_reward_evaluator_engines_up", "Engines that serve.", ("stage",))
EVALUATOR_CHANGE_OVER_SECONDS = Histogram(
    "lean_reward_evaluator_change_over_seconds",
    "Time in which a GPU that holds one model at a time changes over to the other.",
    buckets=_BATCH_SECONDS,
)
EVALUATOR_DEMONSTRATION = Gauge(
    "lean_reward_evaluator_demonstration", "1 while the models are a demonstration whose predictions mean nothing."
)

# Other programs' protocols

COMPAT_SAMPLES = Counter("lean_reward_compat_samples", "Samples of single-sample calls answered.", ("route", "status"))
COMPAT_JOINED = Counter("lean_reward_compat_joined", "Calls joined to an equal sample that was in flight.")
COMPAT_BATCH_SIZE = Histogram(
    "lean_reward_compat_batch_size", "Samples joined into one batch.", buckets=(1, 2, 4, 8, 16, 64, 256, 1024, 4096)
)

# Process rewards

STEPS_JUDGED = Counter("lean_reward_steps_judged", "Steps of agent trajectories that the penalty rules judged.")
PENALTIES = Counter("lean_reward_penalties", "Penalties (gamma) by rule.", ("rule",))
PENALTY_SECONDS = Histogram(
    "lean_reward_penalty_seconds", "Time of one request for penalties.", buckets=(0.01, 0.05, 0.25, 1, 5, 10, 30, 60)
)
GROUP_SECONDS = Histogram(
    "lean_reward_group_seconds", "From receipt of a group of rollouts to its answer.", buckets=_BATCH_SECONDS
)
STAGES = Counter("lean_reward_stages", "Stage visits by their beta and who decided it.", ("beta", "source"))
UNANNOTATED_SHARE = Histogram(
    "lean_reward_unannotated_share",
    "Part of a group's stage visits that nobody judged, where beta was asked for.",
    buckets=(0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 0.9, 1.0),
)
MODEL_CALLS = Counter("lean_reward_model_calls", "Questions to the judge's model by prompt.", ("prompt", "outcome"))
MODEL_SECONDS = Histogram(
    "lean_reward_model_seconds", "Time of one call of the judge's model.", ("prompt",), buckets=_BATCH_SECONDS
)
VOTE_DOWNGRADES = Counter(
    "lean_reward_vote_downgrades", "Votes of +1 that did not count, and failed judges.", ("reason",)
)
CERTIFICATES = Counter("lean_reward_certificates", "Certificates of rollouts, by what Lean made of them.", ("status",))
ROLLOUTS = Counter("lean_reward_rollouts", "Rollouts of agents that were scored.")
ROLLOUT_FLAGS = Counter("lean_reward_rollout_flags", "What trainers were warned of, by rollout.", ("flag",))

# Operation

LEASES_EXPIRED = Counter(
    "lean_reward_leases_expired", "Jobs of vanished workers that this process found, by what became of them.", ("fate",)
)
QUEUE_REACHABLE = Gauge("lean_reward_queue_reachable", "1 while the queue answers this gateway.")
LEAN_IDENTITIES = Gauge("lean_reward_lean_identities", "Different Leans among the announced workers.")
SANDBOX = Gauge("lean_reward_sandbox", "Engines of this worker by the tier that confines their programs.", ("tier",))

# A counter that first appears at 1 has no increase, and these are rare and alerted on: they are there from the start.
for _outcome in ("answered", "failed", "cancelled", "handed_over"):
    for _mode in ("lean", "hybrid", "evaluator"):
        BATCHES.labels(_mode, _outcome)
for _code in ("internal_error", "lean_unavailable", "queue_full", "queue_unavailable", "too_much_in_flight"):
    PROBLEMS.labels(_code)
for _reason in ("infrastructure", "lean_timeout", "not_decided"):
    UNKNOWNS.labels(_reason)
for _reason in ("ok", "compile_error", "kernel_rejected", "resource_exhausted"):
    CHECKS.labels("ok", _reason)
for _status, _reason in (("timeout", "lean_timeout"), ("crashed", "infrastructure")):
    CHECKS.labels(_status, _reason)
for _cause in ("crashed", "out_of_memory", "unavailable"):
    CHECKS_RETRIED.labels(_cause)
for _cause in ("crashed", "out_of_memory", "unavailable", "timeout", "interrupted", "growth", "exited"):
    ENGINE_RESTARTS.labels(_cause)
for _cause in ("drain", "engine", "unstarted"):
    CLAIMS_RELEASED.labels(_cause)
for _result in ("failed", "ok"):
    ENGINE_WARM_UPS.labels(_result)
for _call in ("announce", "claim", "complete", "heartbeat", "reap"):
    QUEUE_ERRORS.labels(_call)
for _fate in ("requeued", "crashed", "expired"):
    LEASES_EXPIRED.labels(_fate)
for _rule in (
    "consecutive_repetition",
    "no_op_command",
    "constant_shell_output",
    "pure_print_script",
    "intermediate_no_action",
    "no_progress_reexecution",
):
    PENALTIES.labels(_rule)

__all__ = ["Counter", "Gauge", "Histogram"]
