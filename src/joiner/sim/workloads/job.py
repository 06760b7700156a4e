"""Jobs: pods that run to an end, so many at once, so many in all."""

from typing import Final, NamedTuple

from joiner.clock import Clock
from joiner.kube.client import Client, Key
from joiner.kube.controller import DONE, Reconciler, Result, Watch
from joiner.kube.informer import Informers
from joiner.model.meta import replace
from joiner.model.pod import Pod
from joiner.model.workload import Job, JobSpec, JobStatus
from joiner.sim.workloads.deployment import first_to_go
from joiner.sim.workloads.ownedpods import BURST, Pods, all_of, keys_by_owner
from joiner.sim.workloads.podfactory import cast, is_active

BACKOFF_LIMIT: Final = 6
PATIENCE_S: Final = 10.0
PATIENCE_S_MOST: Final = 360.0

JOB_NAME: Final = "batch.kubernetes.io/job-name"


class _Failures(NamedTuple):
    """How many pods of a job have failed, and when the last one was noticed."""

    number: int
    since: float


class Jobs(Reconciler):
    """Keeps pods of a job running until enough have succeeded or too many have failed."""

    name = "workloads.job"
    watches = (Watch(Job), Watch(Pod, lambda change: keys_by_owner(Job.kind, change)))

    def __init__(self, *, client: Client, informers: Informers, clock: Clock, pods: Pods) -> None:
        self._client = client
        self._informers = informers
        self._clock = clock
        self._pods = pods
        self._failures: dict[str, _Failures] = {}
        self._ended: dict[str, dict[str, str]] = {}
        """Job to its pods that ended, and how; also those that have been removed since."""

    async def reconcile(self, key: Key) -> Result:
        """Make or let go of pods, and count those that ended. What has once been counted stays counted."""
        found = self._informers.get(Job, key.name, key.namespace)
        if found is None or found.metadata.deletion_timestamp is not None:
            return DONE
        uid = found.metadata.uid
        pods = self._pods.of(uid)
        active = [pod for pod in pods if is_active(pod)]
        ended = self._ended.setdefault(uid, {})
        ended.update(
            (pod.metadata.uid, pod.status.phase) for pod in pods if pod.status.phase in ("Succeeded", "Failed")
        )
        phases = list(ended.values())
        succeeded = max(found.status.succeeded, phases.count("Succeeded"))
        failed = max(found.status.failed, phases.count("Failed"))
        missing = wanted(found.spec, succeeded, failed, len(active)) - len(active) - len(self._pods.unseen(uid))
        wait = self._patience(uid, failed) if missing > 0 else 0.0
        if missing < 0:
            await all_of(self._pods.remove(pod) for pod in first_to_go(active)[:-missing])
        elif missing > 0 and wait <= 0:
            pod = cast(found, found.spec.template, labels={JOB_NAME: found.name})
            await all_of(self._pods.make(uid, pod) for _ in range(min(missing, BURST)))
        status = JobStatus(active=len(active), succeeded=succeeded, failed=failed)
        await self._client.patch_status(found, replace(found, status=status))
        return Result(wait) if wait > 0 else DONE

    def _patience(self, uid: str, failed: int) -> float:
        """How long to wait before the next try, longer after each failure."""
        if not failed:
            return 0.0
        now = self._clock.monotonic()
        known = self._failures.get(uid)
        if known is None or known.number != failed:
            known = self._failures[uid] = _Failures(failed, now)
        return known.since + min(PATIENCE_S_MOST, PATIENCE_S * 2.0 ** min(failed - 1, 10)) - now


def wanted(spec: JobSpec, succeeded: int, failed: int, active: int) -> int:
    """How many pods should be at work now."""
    limit = BACKOFF_LIMIT if spec.backoff_limit is None else spec.backoff_limit
    if spec.suspend or failed > limit:
        return 0
    at_once = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is None and spec.parallelism is not None:
        return min(active, at_once) if succeeded else at_once
    completions = 1 if spec.completions is None else spec.completions
    return max(0, min(at_once, completions - succeeded))
