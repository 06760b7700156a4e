"""The Kubernetes API over HTTP: the client behind `kube.client`, and how it finds a cluster and proves who it is."""
