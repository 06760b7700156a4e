"""The simulated cloud: machines, what can be bought, what it costs, outages; and the CloudProvider over it."""
