"""Simulated kubelets and kube-controller-manager's node controllers."""
