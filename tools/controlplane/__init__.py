"""A Kubernetes control plane on loopback without containers: an API server with etcd, controllers, scheduler, fake kubelets."""
