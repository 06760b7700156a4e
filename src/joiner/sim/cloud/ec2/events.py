"""What EventBridge puts into the queue of a cluster: messages about machines, as AWS writes them."""

from typing import Any

from joiner.sim.cloud.ec2.queue import Queue
from joiner.sim.cloud.ec2.world import ACCOUNT, Account
from joiner.sim.cloud.machines import CloudMachine

_STATES = {"pending": "pending", "running": "running", "shutting-down": "shutting-down", "gone": "terminated"}


class Events:
    """Watches the machines of an account, and writes into one of its queues."""

    def __init__(self, account: Account, queue: str) -> None:
        self._account = account
        self.queue = account.queues.setdefault(queue, Queue())
        self._known: dict[str, str] = {}
        account.cloud.machines.listen(self._changed)
        account.cloud.machines.noticed = self.interruption

    def interruption(self, machine: CloudMachine) -> None:
        """A spot machine is wanted back in two minutes."""
        action = {"instance-action": "terminate"}
        self.send("EC2 Spot Instance Interruption Warning", machine, **action)

    def rebalance(self, machine: CloudMachine) -> None:
        """A spot machine may be wanted back."""
        self.send("EC2 Instance Rebalance Recommendation", machine)

    def reservation_interruption(self, machine: CloudMachine) -> None:
        """The owner of the reservation wants the place of a machine back."""
        self.send("EC2 Capacity Reservation Instance Interruption Warning", machine)

    def _changed(self, machine: CloudMachine) -> None:
        state = _STATES[machine.state]
        if self._known.get(machine.provider_id) != state:
            self._known[machine.provider_id] = state
            self.send("EC2 Instance State-change Notification", machine, state=state)

    def send(self, kind: str, machine: CloudMachine, **detail: Any) -> None:
        """A message about a machine."""
        account = self._account
        if account.cloud.notices.muted:
            return
        identity = machine.provider_id.rpartition("/")[2]
        self.queue.send(
            {
                "version": "0",
                "id": f"event-{self.queue.sent + 1:06}",
                "detail-type": kind,
                "source": "aws.ec2",
                "account": ACCOUNT,
                "time": account.clock.now().isoformat(),
                "region": account.region,
                "resources": [f"arn:aws:ec2:{account.region}:{ACCOUNT}:instance/{identity}"],
                "detail": {"instance-id": identity, **detail},
            }
        )
