"""The AWS provider over the pretend account, as one process has it: what it remembers is lost with that process."""

from typing import Final

from joiner.clock import Clock
from joiner.cloud.aws.inventory import LiveInventory
from joiner.cloud.aws.live import LiveAwsProvider
from joiner.cloud.aws.settings import AwsSettings
from joiner.cloud.provider import NodeClasses
from joiner.kube.client import Client
from joiner.kube.tasks import Tasks
from joiner.sim.cloud.ec2.face import Ec2Face
from joiner.sim.cloud.ec2.world import CLUSTER, Account

QUEUE: Final = "prod-interruptions"


def connect(
    account: Account, *, node_classes: NodeClasses, clock: Clock, client: Client, tasks: Tasks
) -> LiveAwsProvider:
    """The provider with everything it does in the background."""
    queue = "" if account.cloud.notices.muted else QUEUE
    settings = AwsSettings(cluster_name=CLUSTER, region=account.region, interruption_queue=queue)
    api = Ec2Face(account)
    return LiveAwsProvider(node_classes, clock, settings, api, LiveInventory(api, clock, account.region))
