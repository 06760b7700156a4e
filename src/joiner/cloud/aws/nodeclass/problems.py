"""What is wrong with an EC2NodeClass that its schema cannot know: settings that the kubelet does not have or never gets."""

from collections.abc import Iterator
from typing import Final

from joiner.admission.problem import FieldProblem, nearest
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClassSpec
from joiner.cloud.aws.nodeclass.families import family_of
from joiner.cloud.aws.nodeclass.machineparts import NodeKubelet
from joiner.model.codec import fields

_KUBELET: Final = "spec.kubelet"
UNDERSTOOD: Final = frozenset(field.written for field in fields(NodeKubelet))
"""Settings that Joiner plans with, or hands on in every family."""

_OTHERS: Final = """
    address allowedUnsafeSysctls authentication authorization cgroupDriver cgroupRoot cgroupsPerQOS clusterDomain
    configMapAndSecretChangeDetectionStrategy containerLogMaxFiles containerLogMaxSize containerLogMaxWorkers
    containerLogMonitorInterval containerRuntimeEndpoint contentType cpuCFSQuotaPeriod cpuManagerPolicy
    cpuManagerPolicyOptions cpuManagerReconcilePeriod crashLoopBackOff enableContentionProfiling
    enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers enableProfilingHandler enableServer
    enableSystemLogHandler enableSystemLogQuery enforceNodeAllocatable eventBurst eventRecordQPS evictionMinimumReclaim
    evictionPressureTransitionPeriod failCgroupV1 failSwapOn featureGates fileCheckFrequency hairpinMode healthzBindAddress
    healthzPort httpCheckFrequency imageMaximumGCAge imageMinimumGCAge imagePullCredentialsVerificationPolicy
    imageServiceEndpoint iptablesDropBit iptablesMasqueradeBit kernelMemcgNotification kubeAPIBurst kubeAPIQPS
    kubeReservedCgroup kubeletCgroups localStorageCapacityIsolation logging makeIPTablesUtilChains maxOpenFiles
    maxParallelImagePulls memoryManagerPolicy memorySwap memoryThrottlingFactor mergeDefaultEvictionSettings
    nodeLeaseDurationSeconds nodeStatusMaxImages nodeStatusReportFrequency nodeStatusUpdateFrequency oomScoreAdj podCIDR
    podLogsDir podPidsLimit port preloadedImagesVerificationAllowlist protectKernelDefaults providerID qosReserved
    readOnlyPort registerNode registryBurst registryPullQPS reservedMemory reservedSystemCPUs resolvConf rotateCertificates
    runOnce runtimeRequestTimeout seccompDefault serializeImagePulls serverTLSBootstrap showHiddenMetricsForVersion
    shutdownGracePeriod shutdownGracePeriodByPodPriority shutdownGracePeriodCriticalPods singleProcessOOMKill staticPodPath
    staticPodURL staticPodURLHeader streamingConnectionIdleTimeout syncFrequency systemCgroups systemReservedCgroup
    tlsCertFile tlsCipherSuites tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerPolicyOptions
    topologyManagerScope tracing userNamespaces volumePluginDir volumeStatsAggPeriod vmodule
"""
OTHERS: Final = frozenset(_OTHERS.split())
"""The rest of the kubelet's configuration."""


def problems(spec: EC2NodeClassSpec) -> Iterator[FieldProblem]:
    """What keeps the kubelet settings from being used as they are written."""
    yield from invalid(spec)
    yield from unsupported(spec)


def invalid(spec: EC2NodeClassSpec) -> Iterator[FieldProblem]:
    """Settings that no kubelet has, or that are not for users to give."""
    for key in spec.kubelet:
        path = f"{_KUBELET}.{key}"
        if key == "registerWithTaints":
            yield FieldProblem(
                path=path, message="taints are written in the NodePool; Joiner gives them to the kubelet"
            )
        elif key not in UNDERSTOOD and key not in OTHERS:
            like = nearest(key, UNDERSTOOD | OTHERS)
            yield FieldProblem(path=path, message="the kubelet knows no such setting", nearest=like)


def unsupported(spec: EC2NodeClassSpec) -> Iterator[FieldProblem]:
    """Settings that the images of the family do not hand on to their kubelet."""
    family = family_of(spec)
    for key in spec.kubelet if not family.any_kubelet_key else ():
        if key in OTHERS:
            path, allowed = f"{_KUBELET}.{key}", tuple(sorted(UNDERSTOOD))
            yield FieldProblem(path=path, message=f"{family.name} does not take this setting", allowed=allowed)
    if spec.kubelet.get("podsPerCore") and not family.pods_per_core:
        yield FieldProblem(path=f"{_KUBELET}.podsPerCore", message=f"{family.name} does not take podsPerCore")
    dns = spec.kubelet.get("clusterDNS")
    if isinstance(dns, list) and len(dns) > 1 and not family.any_kubelet_key:
        yield FieldProblem(path=f"{_KUBELET}.clusterDNS", message=f"{family.name} takes one address only")
